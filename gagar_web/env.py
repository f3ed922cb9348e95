"""Read the environment; a wrong value names its variable and what is allowed."""

import os
import secrets
from pathlib import Path

from django.core.exceptions import ImproperlyConfigured


def env_str(name: str, default: str, *, allowed: tuple[str, ...] = ()) -> str:
    value = os.environ.get(name) or default
    if allowed and value not in allowed:
        raise ImproperlyConfigured(f"{name}={value!r}, expected one of {', '.join(allowed)}")
    return value


def env_bool(name: str, default: bool) -> bool:
    value = os.environ.get(name, "").lower()
    if value not in ("", "0", "1", "true", "false"):
        raise ImproperlyConfigured(f"{name}={value!r}, expected 1, 0, true or false")
    return default if value == "" else value in ("1", "true")


def env_int(name: str, default: int, *, least: int = 0) -> int:
    value = os.environ.get(name, "")
    try:
        number = int(value) if value else default
    except ValueError:
        raise ImproperlyConfigured(f"{name}={value!r}, expected a whole number") from None
    if number < least:
        raise ImproperlyConfigured(f"{name}={number}, expected {least} or more")
    return number


def env_list(name: str, default: str) -> list[str]:
    return [part.strip() for part in (os.environ.get(name) or default).split(",") if part.strip()]


def env_secret(name: str, kept_in: Path) -> str:
    """The variable, else a secret made once and kept in a file only its owner reads."""
    if value := os.environ.get(name):
        return value
    try:
        handle = os.open(kept_in, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        return kept_in.read_text()
    with os.fdopen(handle, "w") as file:
        file.write(secrets.token_urlsafe(50))
    return kept_in.read_text()
