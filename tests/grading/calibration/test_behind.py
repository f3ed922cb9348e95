"""Each figure of drift, bias and fleet leads to the very groups that it is made of."""

import re
from urllib.parse import parse_qs, urlsplit

import pytest

from grading.models import Grading, Role
from grading.review.decisions import DRAWN
from tests.factories import make_run, make_user
from tests.grading.calibration.said import answered, blind

pytestmark = pytest.mark.django_db
LINK = re.compile(r'href="([^"]*(?:figure|count)=[^"]*)#groups">')


@pytest.fixture
def run():
    return make_run()


@pytest.fixture
def groups(run, client):
    client.force_login(make_user(role=Role.VIEWER, team=run.team))
    made = []
    for n in range(60):
        group = answered(run, {"A": 5, "B": 5 if n % 2 else 4, "C": 3}, hold_probability=0.5,
                         hold_reason=f"{DRAWN} 0.5" if n < 6 else "", step=n)  # fmt: skip
        if n < 6:
            blind(group, *("ABC" if n % 3 else "CBA"))
            group.trajectories.filter(letter="A").update(patch_bytes=900)
        made.append(group)
    Grading.objects.create(group=made[0], verdict=made[0].verdicts.get(), grader="scripted", order=["A", "B", "C"],
                           state="valid", duration_s=2.0, flips=0.25)  # fmt: skip
    return made


def links(client, room: str, run) -> list[str]:
    html = client.get(f"/calibration/{room}?run={run.public_id}&grader=all").content.decode()
    return [link.replace("&amp;", "&") for link in LINK.findall(html)]


@pytest.mark.parametrize("room", ["drift", "bias", "fleet", "agreement"])
def test_each_link_of_a_page_lists_groups(client, run, groups, room):
    found = links(client, room, run)
    assert len(found) > 3
    for link in found:
        answer = client.get(link if link.startswith("/") else f"/calibration/{room}{link}")
        assert b"Groups behind a figure" in answer.content, link
        assert parse_qs(urlsplit(link).query)["run"] == [run.public_id]


def test_before_and_now_part_the_groups_of_the_stream(client, run, groups):
    def listed(time: str, page: int = 1) -> list[int]:
        where = f"/calibration/drift?run={run.public_id}&figure=ties&time={time}&page={page}"
        return [row["group"].pk for row in client.get(where).context["chosen_groups"]["rows"]]

    now = listed("now")
    assert sorted(now) == [one.pk for one in groups[45:]]
    assert now[0] == max(one.pk for one in groups[45:] if one.step % 2)  # two of three tied: the highest first
    assert sorted(listed("before")) == [one.pk for one in groups[:45]]


def test_what_is_watched_lists_its_baseline_and_the_rest(client, run, groups):
    page = f"/calibration/drift?run={run.public_id}&figure=watched-fallback&time="
    first, rest = (client.get(page + time).context["chosen_groups"] for time in ("before", "now"))
    assert (first["of"], rest["of"]) == (50, 10)
    assert {row["group"].pk for row in rest["rows"]} == {one.pk for one in groups[50:]}


def test_groups_that_add_no_value_are_listed_the_newest_first_without_one(client, run, groups):
    page = client.get(f"/calibration/fleet?run={run.public_id}&count=graded&truth=any")
    assert [row["group"].pk for row in page.context["chosen"]["rows"]] == [one.pk for one in groups[:9:-1]]
    assert b"60 groups, the newest first" in page.content and b'<th class="num">Value</th>' not in page.content


def test_the_ceiling_leads_to_the_groups_that_two_people_answered(client, run, groups):
    blind(groups[3], "B", "A", "C")  # beside A, B, C: two of three pairs alike
    page = client.get(f"/calibration/fleet?run={run.public_id}&count=ceiling&truth=blind").context["chosen"]
    assert [(row["group"].pk, row["n"]) for row in page["rows"]] == [(groups[3].pk, 3)]


def test_a_figure_that_is_none_lists_nothing(client, run, groups):
    wrong = ["drift?figure=nonsense&time=now", "drift?figure=ties&time=then", "drift?figure=watched-x&time=now"]
    wrong += ["bias?figure=place&side=beside", "fleet?count=frame&truth=any", "fleet?count=graded&truth=x"]
    for where in wrong:
        assert b"Groups behind a figure" not in client.get(f"/calibration/{where}").content, where
