"""One signed call of a run's webhook: only hosts that the operator named, no redirect, no proxy, a short time."""

import base64
import hmac
import json
from urllib.parse import urlsplit

import httpx
from django.conf import settings
from django.utils.crypto import salted_hmac

from grading import clock
from grading.models import Run

TIMEOUT_S = 3.0
PREFIX = "whsec_"  # of the Standard Webhooks, whose headers these are


def why_not(url: str) -> str:
    """Why this address may not be called; "" if it may."""
    parts = urlsplit(url)
    try:
        port = parts.port
    except ValueError:
        return "The port of the address is no number."
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.username is not None:
        return "A webhook is an http or https address without a user name."
    names = {parts.hostname, f"{parts.hostname}:{port or {'http': 80, 'https': 443}[parts.scheme]}"}
    if not names & set(settings.GAGAR_WEBHOOK_HOSTS):
        return f"The host {parts.hostname} is not one that the operator allows (GAGAR_WEBHOOK_HOSTS)."
    return ""


def secret_of(run: Run) -> str:
    """The run's signing secret, made from the server's own: nothing to store, and a new one by `webhook_n`."""
    return PREFIX + base64.b64encode(_key(run)).decode()


def _key(run: Run) -> bytes:
    return salted_hmac("gagar.webhook", f"{run.pk}:{run.webhook_n}", algorithm="sha256").digest()


def signature(run: Run, *, id: str, at: int, body: bytes) -> str:
    """`v1,` and the base64 of HMAC-SHA256 over `id.at.body`."""
    signed = hmac.digest(_key(run), f"{id}.{at}.".encode() + body, "sha256")
    return "v1," + base64.b64encode(signed).decode()


def call(run: Run, message: dict, *, id: str) -> tuple[bool, str]:
    """Whether the host took it, and its answer in words. The same `id` is the same message, sent again."""
    if words := why_not(run.webhook_url):
        return False, words
    body, at = json.dumps(message, ensure_ascii=False).encode(), int(clock.now().timestamp())
    headers = {
        "Content-Type": "application/json",
        "webhook-id": id,
        "webhook-timestamp": str(at),
        "webhook-signature": signature(run, id=id, at=at, body=body),
    }
    try:
        with httpx.Client(timeout=TIMEOUT_S, follow_redirects=False, trust_env=False) as client:
            answer = client.post(run.webhook_url, content=body, headers=headers)
        return answer.is_success, f"answered {answer.status_code}"
    except (httpx.HTTPError, httpx.InvalidURL) as failed:
        return False, f"{type(failed).__name__}: {failed}"
