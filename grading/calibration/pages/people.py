"""Whose answers a page is of: a run, or all runs of a team."""

from collections.abc import Mapping
from urllib.parse import urlencode

from grading.calibration.identity import choice_of
from grading.calibration.pages.scope import scope_of
from grading.models import Team
from grading.storable import storable


def people_scope(user, query: Mapping[str, str]) -> dict:
    """`run` or `team` of a page, `graders` whose verdicts it reads, what there is to choose from, and `scope` for its
    links; run and team None where unseen."""
    found = scope_of(user, query)
    teams = Team.objects.visible_to(user).order_by("name")
    slug = storable(query.get("team", ""))
    team = teams.filter(slug=slug).first() if slug else None
    if slug:
        found["run"] = None
    run = found["run"]
    where = {"team": team.slug} if team else {"run": run.public_id} if run else {}
    graders = choice_of(user, query, run=run, team=team)
    links = where | ({"grader": graders.value} if query.get("grader") else {})
    return found | {"team": team, "teams": teams, "where": where, "scope": urlencode(links), "graders": graders}
