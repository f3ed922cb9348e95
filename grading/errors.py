"""What grading refuses, each with the HTTP status it means. Message: what, got, expected, way out."""


class GradingError(Exception):
    """Base of every error this package raises on purpose."""

    status = 409

    def __init__(self, what: str, *, got=None, expected=None, where: str | None = None):
        super().__init__(what)
        self.what, self.got, self.expected, self.where = what, got, expected, where

    def __str__(self) -> str:
        said = [self.what]
        if self.got is not None:
            said.append(f"got {self.got}")
        if self.expected is not None:
            said.append(f"expected {self.expected}")
        return ", ".join(said)

    def as_json(self) -> dict:
        return {"what": self.what, "got": self.got, "expected": self.expected, "where": self.where}


class BadInput(GradingError):
    """The request itself is wrong."""

    status = 400


class WrongShape(BadInput):
    """Readable, but not what this call takes."""

    status = 422


class WrongType(BadInput):
    """A content type, charset or encoding this call does not read."""

    status = 415


class NotAllowed(GradingError):
    """The caller may not do this here."""

    status = 403


class NotFound(GradingError):
    """No such row, or none the caller may see."""

    status = 404


class TooLarge(GradingError):
    """Over a limit that the message names."""

    status = 413


class WrongState(GradingError):
    """The row is not in the state this step starts from."""


class Conflict(GradingError):
    """Somebody else was faster, or the same id came with other content."""


class Overtaken(Conflict):
    """A newer verdict exists than the one that the person saw: both are shown, nothing is lost."""


class Fenced(GradingError):
    """A newer life of the job took over."""


class LeaseLost(GradingError):
    """Another worker holds the group now; a late worker's write is refused."""


class FrozenRow(GradingError):
    """History is never edited: publish, correct or decide anew."""


class BodyCorrupt(GradingError):
    """A stored body is not what its key or its index says."""

    status = 500


class ImportRefused(BadInput):
    """A file or folder that cannot be imported as it is."""


class GraderFailed(GradingError):
    """No verdict came out of a grader: its endpoint, a budget, a deadline. `problems` say more, if there is more."""

    status = 502

    def __init__(self, what: str, *, got=None, expected=None, where: str | None = None, problems=()):
        super().__init__(what, got=got, expected=expected, where=where)
        self.problems = tuple(problems)


class NoSandbox(GradingError):
    """Checks are off here: nothing can run them safely, so nothing runs. Grading goes on without them."""

    status = 503
