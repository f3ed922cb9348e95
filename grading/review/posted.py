"""Text out of a posted form."""

from django.http import HttpRequest

from grading.storable import storable


def posted_text(request: HttpRequest, name: str) -> str:
    """One field, trimmed, by the rule of `storable`: PostgreSQL takes no NUL."""
    return storable(request.POST.get(name, "").strip())
