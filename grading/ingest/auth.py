"""A token in the Authorization header, never in a URL. Alone in its file: REST framework loads it before its views."""

from rest_framework.authentication import BaseAuthentication
from rest_framework.exceptions import AuthenticationFailed

from grading.models import MachineToken

SCHEMES = ("bearer", "token")


class MachineTokenAuthentication(BaseAuthentication):
    """`request.user` becomes the MachineToken row: rows ask it what it may see, like a person."""

    def authenticate(self, request):
        header = request.META.get("HTTP_AUTHORIZATION", "")
        if not header:
            return None
        if not _secret_of(header):
            raise AuthenticationFailed("expected 'Authorization: Bearer <token>'")
        found = token_of(header)
        if found is None:
            raise AuthenticationFailed("this token is unknown or revoked")
        return found, found

    def authenticate_header(self, request):
        return "Bearer"


def token_of(header: str) -> MachineToken | None:
    """The token that an Authorization header names; None where it names none that works."""
    secret = _secret_of(header)
    return MachineToken.find(secret) if secret else None


def _secret_of(header: str) -> str:
    scheme, _, secret = header.partition(" ")
    return secret.strip() if scheme.lower() in SCHEMES else ""
