"""Wires everything; nobody imports it."""
