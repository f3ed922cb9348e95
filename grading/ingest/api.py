"""REST for the job: lives, tasks, repositories, groups, and their ends. Trajectories have a file of their own."""

import re

from drf_spectacular.types import OpenApiTypes
from drf_spectacular.utils import OpenApiParameter, extend_schema
from rest_framework.response import Response

from grading.errors import NotFound, WrongShape
from grading.ingest import answers, assemble, declaring, lives, serializers, tasks_register
from grading.ingest.fields import checked, shape
from grading.ingest.machine_view import MachineView, name_in_url
from grading.ingest.reading import STREAM_LIMIT, plain_chunks, read_json
from grading.models import RolloutGroup, Run, Task

LIFE = OpenApiParameter("life", int, description="The job's life; the newest that has the group where left out.")
REFUSALS = dict.fromkeys((400, 401, 403, 404, 409, 413, 415, 422), answers.RefusalOut)


def whole_parameter(request, name: str, *, least: int, default: int | None = None) -> int | None:
    """A whole number from the query, or WrongShape."""
    text = request.query_params.get(name)
    if text is None:
        return default
    if not (text.isascii() and text.isdecimal() and len(text) < 19 and int(text) >= least):
        raise WrongShape("a parameter is no such number", got=text, expected=f"a number >= {least}", where=f"?{name}")
    return int(text)


def group_of(view: MachineView, run: Run, key: str, life: int | None) -> RolloutGroup:
    """The group of this key in this life, else in the newest that has it."""
    groups = RolloutGroup.objects.visible_to(view.request.user).filter(run=run, key=name_in_url(key, "group"))
    if life is not None:
        groups = groups.filter(life__n=life)
    group = groups.select_related("run", "life", "task").order_by("-life__n").first()
    if group is None:
        raise NotFound("no such group", got=key, expected="a key declared in this run and life", where="group")
    return group


def said_by(request) -> str:
    return f"token:{request.user.name}"


class Lives(MachineView):
    access = "token:ingest|train"

    @extend_schema(request=serializers.LifeWire, responses={201: answers.LifeOut} | REFUSALS)
    def post(self, request, run):
        """Begin a life of the job: once per process start. Older lives are fenced."""
        said = checked(serializers.LifeWire, read_json(request, empty={}))
        life = lives.issue_life(self.run_of(run), said["job"])
        return Response(answers.LifeOut(life).data, status=201)


class Tasks(MachineView):
    access = "token:ingest"

    @extend_schema(responses={200: answers.TaskOut} | REFUSALS)
    def get(self, request, key):
        """A task of the register."""
        tasks = Task.objects.visible_to(request.user).select_related("repository")
        task = tasks.filter(key=name_in_url(key, "task")).first()
        if task is None:
            raise NotFound("no such task", got=key, where="task")
        return Response(answers.TaskOut(task).data)

    @extend_schema(request=serializers.TaskWire, responses={200: answers.TaskOut, 201: answers.TaskOut} | REFUSALS)
    def put(self, request, key):
        """Register a task; the same again changes nothing."""
        said = checked(serializers.TaskWire, read_json(request))
        patch, encoded = said.pop("reference_patch", None), said.pop("reference_patch_base64", None)
        if patch is not None and encoded is not None:
            raise WrongShape("two reference patches", expected="one of the two fields", where="reference_patch")
        patch = encoded if patch is None else patch
        team = request.user.run.team
        task, created = tasks_register.put_task(team=team, key=name_in_url(key, "task"), reference_patch=patch, **said)
        return Response(answers.TaskOut(task).data, status=201 if created else 200)


class Repositories(MachineView):
    access = "token:ingest"

    @extend_schema(
        request={"application/octet-stream": OpenApiTypes.BINARY},
        responses={200: answers.RepositoryOut, 201: answers.RepositoryOut} | REFUSALS,
    )
    def put(self, request, sha256):
        """Send a repository: a git bundle or an archive, raw. Its sha256 is its key."""
        if not re.fullmatch(r"[0-9a-f]{64}", sha256):
            raise WrongShape("not a sha256", got=sha256, expected="64 hexadecimal digits, lower case", where="sha256")
        chunks = plain_chunks(request, limit=STREAM_LIMIT)
        stored, created = tasks_register.put_repository(team=request.user.run.team, sha256=sha256, chunks=chunks)
        return Response(answers.RepositoryOut(stored).data, status=201 if created else 200)


class Groups(MachineView):
    access = "token:ingest"

    @extend_schema(parameters=[LIFE], responses={200: answers.GroupOut} | REFUSALS)
    def get(self, request, run, key):
        """A group: its state, its rollouts, and whether their bodies are wanted."""
        life = whole_parameter(request, "life", least=1)
        return Response(shape(answers.GroupOut).to_representation(group_of(self, self.run_of(run), key, life)))

    @extend_schema(request=serializers.GroupWire, responses={200: answers.GroupOut, 201: answers.GroupOut} | REFUSALS)
    def put(self, request, run, key):
        """Declare a group before its rollouts; the same again changes nothing."""
        said = checked(serializers.GroupWire, read_json(request))
        group, created = declaring.declare_group(run=self.run_of(run), key=name_in_url(key, "group"), **said)
        return Response(shape(answers.GroupOut).to_representation(group), status=201 if created else 200)


class Seal(MachineView):
    access = "token:ingest"

    @extend_schema(request=serializers.SealWire, parameters=[LIFE], responses={200: answers.GroupOut} | REFUSALS)
    def post(self, request, run, key):
        """Complete a group that stays smaller than declared."""
        said = checked(serializers.SealWire, read_json(request, empty={}))
        life = said.get("life") or whole_parameter(request, "life", least=1)
        group = assemble.seal(group_of(self, self.run_of(run), key, life), by=said_by(request))
        return Response(shape(answers.GroupOut).to_representation(group))


class Amend(MachineView):
    access = "token:ingest"

    @extend_schema(request=serializers.AmendWire, responses={200: answers.GroupOut} | REFUSALS)
    def post(self, request, run, key):
        """Change a rollout's outcome (a flaky test). What was decided is decided anew, as a new version."""
        said = checked(serializers.AmendWire, read_json(request))
        life = said.pop("life", None) or whole_parameter(request, "life", least=1)
        group = group_of(self, self.run_of(run), key, life)
        return Response(shape(answers.GroupOut).to_representation(assemble.amend(group, by=said_by(request), **said)))
