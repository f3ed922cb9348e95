"""Anchor groups: chosen or drawn once, graded again by the grader of a run when it changed, and every week.

Gradings of a round are rows like those a person asks for; the grading job does them, and their verdicts decide nothing.
"""

from datetime import timedelta
from random import Random

from django.conf import settings
from django.db import transaction
from django.db.models import Count, Q

from grading import clock, wake
from grading.errors import BadInput, Conflict, WrongState
from grading.grader import claims, regrade
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.grader.prompts import manifest, prompt
from grading.models import Anchor, AnchorRound, RolloutGroup, Run, Team
from grading.states import ENDED, Method, Outcome, Purpose

WANTED = 60  # anchors of a team
MOST = 500
EVERY = timedelta(days=7)
IDLE = timedelta(days=14)  # a run that graded nothing for so long costs no more rounds
BY_CLOCK = "policy:drift"


def of_team(team: Team):
    """The anchors in use."""
    return Anchor.objects.filter(group__run__team=team, retired_at=None)


def choosable(team: Team):
    """Decided groups with two passing candidates that a grader ranked validly, and that are no anchors yet."""
    groups = RolloutGroup.objects.filter(run__team=team, state__in=ENDED, end_reason="", eligible=True)
    groups = groups.exclude(method=Method.OUTCOME).exclude(anchor__retired_at=None, anchor__isnull=False)
    passing = Count("trajectories", Q(trajectories__outcome=Outcome.PASSED, trajectories__integrity=""), distinct=True)
    graded = groups.filter(verdicts__purpose=Purpose.TRAINING, verdicts__is_valid=True)
    return graded.annotate(passing=passing).filter(passing__gte=2).distinct()


@transaction.atomic
def choose(group: RolloutGroup, *, user, seed: int | None = None) -> Anchor:
    """Make a group an anchor of its team, also one that was retired. Raises WrongState, Conflict."""
    regrade.refuse_ungradable(group)
    if not choosable(group.run.team).filter(pk=group.pk).exists():
        if of_team(group.run.team).filter(group=group).exists():
            raise Conflict(f"group {group.key} is an anchor already")
        raise WrongState(
            f"group {group.key} cannot be an anchor", expected="decided, two passing candidates, a valid verdict"
        )
    if of_team(group.run.team).count() >= MOST:
        raise Conflict(f"a team has {MOST} anchors at most: retire one first")
    fields = {"chosen_by": user, "seed": seed, "retired_at": None}
    return Anchor.objects.update_or_create(group=group, defaults=fields)[0]


def retire(anchor: Anchor) -> None:
    """The next rounds leave it out; what was graded stays."""
    Anchor.objects.filter(pk=anchor.pk, retired_at=None).update(retired_at=clock.now())


@transaction.atomic
def draw(team: Team, *, n: int, seed: int, user) -> list[Anchor]:
    """Draw `n` anchors more, the same for the same seed and groups. Raises BadInput where none can be drawn."""
    if not 1 <= n <= MOST:
        raise BadInput("no number of anchors", got=n, expected=f"1 to {MOST}")
    known = list(choosable(team).order_by("pk").values_list("pk", flat=True))
    if not known:
        raise BadInput("no group to draw", got=0, expected="decided groups with two passing candidates and a verdict")
    chosen = Random(seed).sample(known, min(n, len(known), MOST))
    groups = RolloutGroup.objects.select_related("run__team").in_bulk(chosen)
    return [choose(groups[pk], user=user, seed=seed) for pk in chosen]


# ---- rounds ----


def fingerprint(run: Run) -> dict[str, str]:
    """What makes a run's grader another one: its name, model and newest prompt."""
    networked = claims.is_networked(run.grader)
    model = GradingOptions.from_json(run.grading).model or settings.GAGAR_GRADER_MODEL if networked else ""
    has_prompt = any(key.partition("@")[0] == run.grader for key in manifest()["prompts"])
    return {"grader": run.grader, "model": model, "prompt": prompt(run.grader).name if has_prompt else ""}


def changed(before: dict[str, str], now: dict[str, str]) -> str:
    """What is different, in words; "" where nothing is."""
    differ = [name for name in now if before.get(name, "") != now[name]]
    return ", ".join(f"{name} {before.get(name) or 'none'} → {now[name] or 'none'}" for name in differ)


def why_due(run: Run) -> str:
    """Why the anchors are graded again by this run's grader; "" if they are not."""
    if run.grader not in GRADERS or run.paused or not of_team(run.team).exists():
        return ""
    now, mine = fingerprint(run), run.anchor_rounds.last()
    if mine and (words := changed(mine.fingerprint, now)):
        return f"changed: {words}"
    same = [r for r in AnchorRound.objects.filter(run__team=run.team).order_by("-pk")[:100] if r.fingerprint == now]
    if not same:
        return "this grader has not graded the anchors yet"
    return "a week has passed" if clock.now() - same[0].at >= EVERY else ""


def why_no_round(run: Run) -> str:
    """Why no round can start, however due; "" if one can."""
    if run.grader not in GRADERS:
        return f"run {run} is graded by {run.grader}: only graders of this server grade anchors by themselves"
    return "" if _gradable(run.team).exists() else f"team {run.team} has no anchor to grade: choose or draw some first"


def _gradable(team: Team):
    return of_team(team).filter(group__state__in=ENDED, group__end_reason="")


@transaction.atomic
def start(run: Run, *, why: str, by: str) -> AnchorRound:
    """Queue one grading of each anchor of the team. Raises WrongState while there is none, or no grader to ask."""
    run = Run.objects.select_for_update(of=("self",)).select_related("team").get(pk=run.pk)
    if why_not := why_no_round(run):
        raise WrongState(why_not)
    round = AnchorRound.objects.create(run=run, fingerprint=fingerprint(run), why=why[:200], asked_by=by)
    for anchor in _gradable(run.team).select_related("group"):
        regrade.ask_for_round(anchor.group, round)
    wake.grading()
    return round


def start_due() -> int:
    """Start what is due, run by run. Returns how many rounds."""
    since, started = clock.now() - IDLE, 0
    teams = Anchor.objects.filter(retired_at=None).values("group__run__team")
    runs = Run.objects.filter(kind=Run.Kind.LIVE, team__in=teams, groups__graded_at__gte=since).distinct()
    for run in runs.select_related("team"):
        with transaction.atomic():
            Run.objects.select_for_update(of=("self",)).get(pk=run.pk)  # two sweeps must not start it both
            if why := why_due(run):
                start(run, why=why, by=BY_CLOCK)
                started += 1
    return started
