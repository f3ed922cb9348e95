"""Steps of the task register: what was asked, on which repository, from which commit."""

from collections.abc import Iterable
from urllib.parse import urlsplit

from django.conf import settings
from django.db import transaction

from grading import bodies
from grading.errors import Conflict, WrongShape
from grading.models import Repository, Task, Team

GIT_SCHEMES = ("https", "ssh", "git")


def put_task(
    *,
    team: Team,
    key: str,
    statement: str,
    repository: str = "",
    base_commit: str = "",
    reference_patch: bytes | None = None,
) -> tuple[Task, bool]:
    """Register a task. The same again changes nothing; other content under the same key is a Conflict.

    `repository` is the sha256 of one that was sent before, or a git URL on a host the operator allows.
    """
    stored, url = _repository(team, repository)
    said = {
        "statement": statement,
        "repository": stored,
        "repository_url": url,
        "base_commit": base_commit,
        "reference_patch": bodies.write_bytes(reference_patch) if reference_patch else "",
    }
    task, created = Task.objects.get_or_create(team=team, key=key, defaults=said)
    if changed := [name for name, value in said.items() if getattr(task, name) != value]:
        shown = {name: str(getattr(task, name) or "")[:200] for name in changed}
        raise Conflict(
            f"task {key} is registered with other content: use another key",
            got={name: str(said[name] or "")[:200] for name in changed},
            expected=shown,
            where=", ".join(changed),
        )
    return task, created


def _repository(team: Team, repository: str) -> tuple[Repository | None, str]:
    if not repository:
        return None, ""
    if found := Repository.objects.filter(team=team, sha256=repository).first():
        return found, ""
    if "://" in repository:
        return None, _allowed_url(repository)
    raise WrongShape(
        "no such repository",
        got=repository[:200],
        expected="the sha256 of one sent by PUT /repositories/{sha256}, or a git URL",
        where="repository",
    )


def _allowed_url(url: str) -> str:
    """A server must fetch from no host but those its operator names, and stores no password."""
    hosts = settings.GAGAR_GIT_HOSTS
    try:
        parts = urlsplit(url)
        host, secret = (parts.hostname or "").lower(), parts.password
    except ValueError as e:
        raise WrongShape("not a URL", got=str(e)[:200], expected="a git URL", where="repository") from None
    if parts.scheme not in GIT_SCHEMES or host not in hosts:
        raise WrongShape(
            "this git host is not allowed",
            got=f"{parts.scheme}://{host}"[:200],
            expected=f"{' or '.join(GIT_SCHEMES)} on one of GAGAR_GIT_HOSTS: {', '.join(hosts) or 'none'}",
            where="repository",
        )
    if secret:
        raise WrongShape("a password in a git URL", expected="a URL without one", where="repository")
    return url


def put_repository(*, team: Team, sha256: str, chunks: Iterable[bytes]) -> tuple[Repository, bool]:
    """Store a bundle or an archive as it comes, if it is what its key says."""
    stored, plain_bytes = bodies.write_stream(chunks, expected=sha256)
    with transaction.atomic():
        return Repository.objects.get_or_create(team=team, sha256=stored, defaults={"bytes": plain_bytes})
