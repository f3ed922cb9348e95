"""REST for the groups of a run: the list, and a whole step declared in one request, answered item by item."""

from typing import Any

from drf_spectacular.utils import extend_schema
from rest_framework.response import Response

from grading.errors import Conflict, GradingError
from grading.ingest import answers, refusals, serializers
from grading.ingest.api import REFUSALS
from grading.ingest.declaring import Declaration, declare_all
from grading.ingest.fields import checked, unknown_fields
from grading.ingest.listing import GroupList
from grading.ingest.reading import read_json
from grading.storable import storable


class GroupsOfRun(GroupList):
    access = "token:ingest"

    @extend_schema(
        request=serializers.DeclarationsSchema,
        responses={200: answers.DeclaredOut, 207: answers.DeclaredOut} | REFUSALS,
    )
    def post(self, request, run):
        """Declare groups before their rollouts: 200, or 207 if one was refused; the same again changes nothing."""
        said = checked(serializers.DeclarationsWire, read_json(request))
        asked = [_declaration(fields, where=f"groups[{at}]") for at, fields in enumerate(said["groups"])]
        good = [one for one in asked if isinstance(one, Declaration)]
        declared = iter(declare_all(run=self.run_of(run), life=said["life"], declarations=good))
        results = [next(declared) if isinstance(one, Declaration) else one for one in asked]
        items = [_item(fields, result) for fields, result in zip(said["groups"], results, strict=True)]
        return Response({"items": items}, status=207 if any("error" in item for item in items) else 200)


def _declaration(fields: Any, *, where: str) -> Declaration | GradingError:
    try:
        return Declaration(**checked(serializers.DeclarationWire, fields, where=where))
    except GradingError as refused:
        return refused


def _item(fields: Any, result: tuple | GradingError) -> dict:
    key = fields.get("key") if isinstance(fields, dict) else None
    item = {"key": storable(key)[:200] if isinstance(key, str) else None}
    if isinstance(result, GradingError):
        status = "conflict" if isinstance(result, Conflict) else "error"
        return item | {"status": status, "error": refusals.as_json(result)}
    ignored = unknown_fields(serializers.DeclarationWire, fields)
    return item | {"status": "created" if result[1] else "exists"} | ({"ignored": ignored} if ignored else {})
