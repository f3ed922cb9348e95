"""Who answers what no view could: machines get JSON, people a page in plain words."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from grading.access import came_from, open_to_all
from grading.ingest import refusals


def malformed(request: HttpRequest, exception: Exception) -> HttpResponse:
    if request.path.startswith(refusals.API):
        return refusals.bad_request(request, exception)
    return HttpResponse("This request is malformed.", status=400, content_type="text/plain")


def not_allowed(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "errors/403.html", status=403)


@open_to_all
def no_csrf_token(request: HttpRequest, reason: str = "") -> HttpResponse:
    """A form of a page from before the last sign-in, or of another site: whoever is signed in now sent nothing."""
    return render(request, "errors/stale_form.html", {"page": came_from(request) or "/"}, status=403)


def not_found(request: HttpRequest, exception: Exception | None = None) -> HttpResponse:
    return render(request, "errors/404.html", status=404)


def failed(request: HttpRequest) -> HttpResponse:
    if request.path.startswith(refusals.API):
        return refusals.server_error(request)
    return render(request, "errors/500.html", status=500)
