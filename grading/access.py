"""Who may open a view. Each decorator leaves its word in `view.access`; a test over the URL table asks for it."""

from functools import wraps

from django.contrib.auth.decorators import login_required
from django.core.exceptions import PermissionDenied

from grading.models import Role


def _at_least(role: str):
    def decorator(view):
        @wraps(view)
        def checked(request, *args, **kwargs):
            user = request.user
            if not user.is_superuser and not user.memberships.filter(role__in=Role.at_least(role)).exists():
                raise PermissionDenied(f"this needs the role {role} in a team")
            # The row itself is found by `visible_to(user, role)`: a reviewer of one team is nobody in another.
            return view(request, *args, **kwargs)

        gate = login_required(checked)
        gate.access = role
        return gate

    return decorator


viewer_required = _at_least(Role.VIEWER)
reviewer_required = _at_least(Role.REVIEWER)
admin_required = _at_least(Role.ADMIN)


def open_to_all(view):
    """Sign-in and what must be reachable without it."""
    view.access = "everybody"
    return view
