"""What the client raises in the training process: only for mistakes of the caller, never for an absent server."""


class GagarError(Exception):
    """A call that cannot mean anything: what, got, expected."""

    def __init__(self, what: str, *, got: object, expected: object):
        super().__init__(f"{what}: got {got}, expected {expected}")
        self.what, self.got, self.expected = what, str(got), str(expected)
