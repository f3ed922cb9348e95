"""The base of every view for machines: a token for one run, with purposes; JSON whatever the client accepts."""

from rest_framework.negotiation import BaseContentNegotiation
from rest_framework.permissions import SAFE_METHODS, BasePermission
from rest_framework.views import APIView

from grading.errors import BadInput, NotAllowed, NotFound
from grading.ingest.auth import MachineTokenAuthentication
from grading.models import MachineToken, Run

LONGEST_NAME = 200


class HasPurpose(BasePermission):
    """A view's `access` names the purposes it serves, as in "token:ingest"; `read` opens every GET besides."""

    def has_permission(self, request, view):
        token = request.user
        if not isinstance(token, MachineToken):
            return False
        needed = purposes_of(view)
        if any(token.may(purpose) for purpose in needed) or (request.method in SAFE_METHODS and token.may("read")):
            return True
        raise NotAllowed(
            "this token has another purpose",
            got=", ".join(token.purposes) or "none",
            expected=" or ".join(needed),
            where="Authorization",
        )


def purposes_of(view) -> list[str]:
    return view.access.removeprefix("token:").split("|")


class AlwaysJson(BaseContentNegotiation):
    """Machines get JSON, whatever their Accept header says."""

    def select_parser(self, request, parsers):
        return parsers[0]

    def select_renderer(self, request, renderers, format_suffix=None):
        return renderers[0], renderers[0].media_type


class MachineView(APIView):
    """Base of every view for machines. Subclasses name their `access`."""

    authentication_classes = [MachineTokenAuthentication]
    permission_classes = [HasPurpose]
    content_negotiation_class = AlwaysJson
    access = "token:read"

    def run_of(self, public_id: str) -> Run:
        """The run in the URL, if it is the token's; another team's run is as unknown as none."""
        run = self.request.user.run
        if name_in_url(public_id, "run") != run.public_id:
            raise NotFound("no such run for this token", got=public_id[:80], where="run")
        return run


def name_in_url(name: str, where: str) -> str:
    """A key or id out of the URL: what a database column cannot hold is no name."""
    if not 0 < len(name) <= LONGEST_NAME:
        raise BadInput(
            "the name is too long", got=f"{len(name)} characters", expected=f"1 to {LONGEST_NAME}", where=where
        )
    if not name.isprintable():
        raise BadInput("the name holds control characters", got=repr(name)[:80], expected="printable text", where=where)
    return name
