"""Who may open a view. Each decorator leaves its word in `view.access`; a test over the URL table asks for it."""

from functools import wraps
from urllib.parse import urlsplit

from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from grading.models import Role


def _at_least(role: str):
    def decorator(view):
        @wraps(view)
        def gate(request, *args, **kwargs):
            user = request.user
            if not user.is_authenticated:
                return _signed_out(request)
            if not user.is_superuser and not user.memberships.filter(role__in=Role.at_least(role)).exists():
                raise PermissionDenied(f"this needs the role {role} in a team")
            # The row itself is found by `visible_to(user, role)`: a reviewer of one team is nobody in another.
            return view(request, *args, **kwargs)

        gate.access = role
        return gate

    return decorator


def _signed_out(request: HttpRequest) -> HttpResponse:
    """To the sign-in, and from there back to the page one was on; a part of an open page is answered in words."""
    if request.headers.get("HX-Request"):  # a sign-in form must not be drawn into what somebody is typing in
        return render(request, "errors/signed_out.html", status=401)
    page = came_from(request) if request.method == "POST" else ""
    return redirect_to_login(page or request.get_full_path())


def came_from(request: HttpRequest) -> str:
    """The page of ours that a form was sent from, without its host; "" where it was another site's or is not said."""
    page = urlsplit(request.headers.get("Referer", ""))
    return page._replace(scheme="", netloc="").geturl() if page.netloc == request.get_host() else ""


viewer_required = _at_least(Role.VIEWER)
reviewer_required = _at_least(Role.REVIEWER)
admin_required = _at_least(Role.ADMIN)


def open_to_all(view):
    """Sign-in and what must be reachable without it."""
    view.access = "everybody"
    return view
