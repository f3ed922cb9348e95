"""Every refusal of the API as one JSON shape: what, got, expected, where. Never HTML, never a bare 500."""

import json
import logging

from django.core.exceptions import PermissionDenied, RequestDataTooBig, SuspiciousOperation
from django.db import OperationalError
from django.http import Http404, HttpRequest, HttpResponse, JsonResponse, UnreadablePostError
from django.views import defaults
from rest_framework import exceptions
from rest_framework.response import Response
from rest_framework.views import set_rollback

from grading.errors import GradingError
from grading.storable import storable

log = logging.getLogger(__name__)
SAID_CHARS = 200
API = "/api/"
PLAIN = {  # what Django and its libraries raise on their own
    Http404: (404, "there is nothing at this address"),
    PermissionDenied: (403, "not allowed"),
    RequestDataTooBig: (413, "the body is too large"),
    UnreadablePostError: (400, "the body broke off"),
    SuspiciousOperation: (400, "the request is malformed"),
    OperationalError: (503, "the database is busy or away: try again"),
}


def answer(exc: Exception, context) -> Response:
    """The exception handler of the API."""
    set_rollback()
    if isinstance(exc, GradingError):
        return Response(as_json(exc), status=exc.status)
    if isinstance(exc, exceptions.APIException):
        return _of_rest_framework(exc)
    for kind, (status, what) in PLAIN.items():
        if isinstance(exc, kind):
            return Response(refusal(what), status=status)
    log.exception("the API failed at %s", context["request"].path)
    return Response(refusal("the server failed; its log says why"), status=500)


def as_json(error: GradingError) -> dict:
    """The error's own words, safe to encode and short."""
    return refusal(**error.as_json())


def refusal(what: str, got=None, expected=None, where: str | None = None) -> dict:
    return {"what": storable(what), "got": _short(got), "expected": _short(expected), "where": storable(where)}


def _short(value):
    """A value to repeat: whole if it is small, else the beginning of its JSON text."""
    value = storable(value)
    text = value if isinstance(value, str) else json.dumps(value, default=str)
    if len(text) <= SAID_CHARS:
        return value if isinstance(value, str | int | float | list | dict | None) else text
    return f"{text[:SAID_CHARS]}… ({len(text)} characters)"


def _of_rest_framework(exc: exceptions.APIException) -> Response:
    headers = {}
    if getattr(exc, "auth_header", None):
        headers["WWW-Authenticate"] = exc.auth_header
    if getattr(exc, "wait", None):
        headers["Retry-After"] = str(int(exc.wait) + 1)
    if isinstance(exc, exceptions.NotAuthenticated):
        said = refusal("no token", expected="Authorization: Bearer <token>", where="Authorization")
    elif isinstance(exc, exceptions.AuthenticationFailed):
        said = refusal(str(exc.detail), where="Authorization")
    else:
        said = refusal(str(exc.detail))
    return Response(said, status=exc.status_code, headers=headers)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """The site's handler400: a Host that is not ours, for one, never reaches a view."""
    if not request.path.startswith(API):
        return defaults.bad_request(request, exception)
    return JsonResponse(refusal("the request is malformed", got=type(exception).__name__), status=400)


def server_error(request: HttpRequest) -> HttpResponse:
    """The site's handler500."""
    if not request.path.startswith(API):
        return defaults.server_error(request)
    return JsonResponse(refusal("the server failed; its log says why"), status=500)
