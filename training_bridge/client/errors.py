"""What the client raises in the training process: only for mistakes of the caller, never for an absent server."""


class GagarError(Exception):
    """A call that cannot mean anything: what, got, expected."""

    def __init__(self, what: str, *, got: object, expected: object):
        super().__init__(f"{what}: got {got}, expected {expected}")
        self.what, self.got, self.expected = what, str(got), str(expected)


def check_name(what: str, name: str) -> None:
    """Refuse an id that no message could carry, here and not later in another thread.

    Args:
        what: for the error.
        name: of a group or rollout.
    Raises:
        GagarError: it is empty, longer than 200 characters, or holds a NUL or a lone surrogate.
    """
    whole = name.encode("utf-8", "replace").decode() == name
    if not 1 <= len(name) <= 200 or "\0" in name or not whole:
        raise GagarError(what, got=repr(name[:60]), expected="1 to 200 characters of Unicode text without NUL")
