"""What a failed call means: whether it may pass by itself, and how it is said without the key. Core."""

from collections.abc import Mapping

import httpx2
from pydantic_ai import exceptions as ai

from grading.errors import GraderFailed
from grading.grader.retries import is_worth_retrying

ERROR_CHARS = 500
LESS = "less text: lower max_context_tokens, max_input_tokens or max_output_tokens in the run's options"
STREAM = "a streamed answer of the model's family; is it the base URL (GAGAR_GRADER_URL, usually ending in /v1)?"
WAY_OUT = {
    400: "a request it understands: see its words",
    401: "a key that it accepts (GAGAR_GRADER_KEY)",
    403: "a key that may use this model (GAGAR_GRADER_KEY)",
    404: "a base URL and a model that exist there (GAGAR_GRADER_URL, usually ending in /v1, and GAGAR_GRADER_MODEL)",
    413: LESS,
}


def status_of(failure: BaseException) -> int | None:
    """Returns: the HTTP status behind a failure, also of a redirect that was not followed; None where there is none."""
    for one in (failure, failure.__cause__):
        status = getattr(one, "status_code", None)
        if isinstance(status, int):
            return status
    return None


def is_temporary(failure: Exception) -> bool:
    """Returns: whether the same call may succeed later: refused, cut, overloaded or broken, but not rejected."""
    if isinstance(failure, ai.ModelQuotaExceededError | ai.ModelRequestRejectedError | ai.ContentFilterError):
        return False
    if isinstance(failure, ai.UserError | GraderFailed):
        return False
    status = status_of(failure)
    if status is not None:
        return is_worth_retrying(status)
    return isinstance(failure, ai.ModelAPIError | ai.UnexpectedModelBehavior | httpx2.HTTPError)


def way_out_of(failure: Exception) -> str | None:
    """Returns: what to set right after a failure that no repetition changes, None where nothing is known."""
    if isinstance(failure, ai.ModelContextWindowExceededError):
        return LESS
    if isinstance(failure, ai.UnexpectedModelBehavior):
        return STREAM
    return WAY_OUT.get(status_of(failure) or 0)


def said_of(failure: BaseException, key: str = "") -> str:
    """Say a failure in one line.

    Args:
        failure: of a call.
        key: left out of the words.
    Returns:
        At most 500 characters.
    """
    status = status_of(failure)
    words = " ".join(words_of(failure).split())
    if status is not None and 300 <= status < 400:
        words = "it redirects, and redirects are not followed"
    if isinstance(failure, TimeoutError):
        words = "no whole answer in time"
    if key:
        words = words.replace(key, "…")
    return (f"HTTP {status}: {words}" if status is not None else words)[:ERROR_CHARS]


def words_of(failure: BaseException) -> str:
    """Returns: the words of a failure; an endpoint's own message where it sent one."""
    body = getattr(failure, "body", None)
    error = body.get("error", body) if isinstance(body, Mapping) else None
    message = error.get("message") if isinstance(error, Mapping) else None
    if isinstance(message, str) and message:
        return message
    cause = failure.__cause__
    own = str(getattr(failure, "message", "")) or str(failure)
    words = own or (str(cause) if cause else "")
    return words if words else type(failure).__name__
