"""The diff engine: bytes in, frozen dataclasses and HTML rows out. Core."""
