"""Text out of a posted form."""

from django.http import HttpRequest

from grading.storable import storable


def posted_text(request: HttpRequest, name: str) -> str:
    """One field, trimmed, by the rule of `storable`: PostgreSQL takes no NUL."""
    return storable(request.POST.get(name, "").strip())


def attention_of(request: HttpRequest) -> float | None:
    """The seconds that somebody had the page in front of them and did something; None where no script counted."""
    typed = request.POST.get("attention_s", "")
    return float(typed) if typed.isdecimal() and len(typed) < 7 else None
