"""What a sandbox prints, kept up to a limit and read without ever holding more. Core."""

from grading.grader.sandbox.judge import FLOOD_BYTES

LEAST_STDOUT = 1 << 20  # records of our runner are read whole, however little output is kept


class Kept:
    """The first `limit` bytes of stdout and stderr together, and of stdout alone, to be judged, at least 1 MiB.

    The first byte on stdout is the sandbox's word that it is up, and not output.
    """

    def __init__(self, limit: int):
        self.limit, self.printed, self.is_up = limit, 0, False
        self.output, self.stdout = bytearray(), bytearray()

    def add(self, data: bytes, *, is_stdout: bool, is_ours: bool = False) -> None:
        """`is_ours`: stdout is our runner's channel, and not output."""
        if is_stdout and not self.is_up:
            data, self.is_up = data[1:], True
        if is_stdout:
            self.stdout += data[: max(max(self.limit, LEAST_STDOUT) - len(self.stdout), 0)]
        if not (is_stdout and is_ours):
            self.printed += len(data)
            self.output += data[: max(self.limit - len(self.output), 0)]

    @property
    def is_truncated(self) -> bool:
        return self.printed > self.limit

    @property
    def is_flood(self) -> bool:
        return self.printed > FLOOD_BYTES
