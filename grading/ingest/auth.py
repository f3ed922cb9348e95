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
        scheme, _, token = header.partition(" ")
        if scheme.lower() not in SCHEMES or not token.strip():
            raise AuthenticationFailed("expected 'Authorization: Bearer <token>'")
        found = MachineToken.find(token.strip())
        if found is None:
            raise AuthenticationFailed("this token is unknown or revoked")
        return found, found

    def authenticate_header(self, request):
        return "Bearer"
