"""The review page and its actions, over plain HTTP: no script is needed for any of them."""

import re

import pytest
from django.test import Client
from django.urls import reverse

from grading.models import Role
from grading.review import decisions, queue
from grading.review.pages.sitting import Sitting
from grading.scoring.criteria import CRITERIA
from grading.states import DecisionKind, GroupState
from tests.factories import PATCH, make_group, make_run, make_user
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db
EVENTS = [{"kind": "action", "text": "cat hidden_tests.py"}, {"kind": "submit", "text": "done"}]


@pytest.fixture
def group():
    held = held_group(outcomes="PPFI", events=EVENTS, hold_reason="policy manual")
    add_verdict(held, {"A": 5, "B": 3})
    return held


@pytest.fixture
def reviewer(group):
    return make_user(username="rita", role=Role.REVIEWER, team=group.run.team)


@pytest.fixture
def page(client, reviewer):
    client.force_login(reviewer)
    return client


def url(name: str, group, *args) -> str:
    return reverse(name, args=[group.pk, *args])


def form(group, **changes) -> dict:
    """What the page's own form posts when nothing is changed, with these changes."""
    fields = {"verdict": decisions.newest_verdict(group).pk, "reason": "too wide"}
    for placed in decisions.newest_verdict(group).candidates.select_related("trajectory"):
        letter = placed.trajectory.letter
        fields |= {f"score-{letter}-{criterion}": placed.scores[criterion] for criterion in CRITERIA}
        fields |= {f"place-{letter}": placed.rank + 1}
        fields |= {f"flag-{letter}": placed.flags} if placed.flags else {}
    cite = {"letter": "A", "about": "minimality", "kind": "new", "place": "app.py:2", "quote": ""}
    return fields | {f"cite-1-{part}": value for part, value in cite.items()} | changes


def test_the_page_shows_tiers_diffs_and_evidence_by_letters(page, group):
    html = page.get(url("group", group)).content.decode()
    for shown in ("Tier 1", "Tier 2", 'id="A-f0"', 'id="B-f0"', 'id="evidence-1"', "infra-invalid", "Approve"):
        assert shown in html
    assert "#B-f0-R2" in html  # the citation links to its line
    for trajectory in group.trajectories.all():
        assert trajectory.external_id not in html


@pytest.mark.parametrize("tab", ["diff", "events", "tests", "checks", "nonsense"])
def test_the_page_asks_few_questions_whatever_is_open(page, group, tab, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        assert page.get(url("group", group), {"tab": tab}).status_code == 200


def test_the_number_of_questions_does_not_grow_with_the_group(page, reviewer, django_assert_max_num_queries):
    big = held_group(run=make_run(team=reviewer.memberships.get().team, policy="manual"), outcomes="P" * 15 + "F")
    with django_assert_max_num_queries(20):
        assert page.get(url("group", big)).status_code == 200


def test_no_event_body_is_read_for_the_page(page, group, settings, tmp_path):
    # The bodies of events are gone: the page must not miss them.
    from django.core.files.storage import storages

    for trajectory in group.trajectories.all():
        storages["bodies"].delete(f"events/{trajectory.event_body[:2]}/{trajectory.event_body}.zst")
    assert page.get(url("group", group)).status_code == 200
    assert page.get(url("group", group), {"tab": "events"}).status_code == 200


def test_sides_are_chosen_by_the_address(page, group):
    html = page.get(url("group", group), {"left": "C", "right": "D"}).content.decode()
    assert 'data-left="C" data-right="D"' in html


def test_each_reviewer_sees_an_order_of_their_own_that_stays(group):
    def order(user):
        return [t.letter for t in Sitting(group, user).trajectories]

    users = [make_user(role=Role.REVIEWER, team=group.run.team) for _ in range(8)]
    assert len({tuple(order(user)) for user in users}) > 1
    assert order(users[0]) == order(users[0])


def test_a_file_opens_as_a_part_and_as_a_page(page, group):
    address = url("group-file", group, "A", 0)
    part = page.get(address, headers={"HX-Request": "true"}).content.decode()
    whole = page.get(address).content.decode()
    assert part.startswith("<table") and "<html" not in part
    assert "<html" in whole and 'id="A-f0-R2"' in whole
    assert page.get(url("group-file", group, "A", 9)).status_code == 404
    assert page.get(url("group-file", group, "Z", 0)).status_code == 404


def test_a_correction_is_saved_from_the_plain_form_and_approved(page, group):
    saved = page.post(url("group-correct", group), form(group, **{"score-A-minimality": "2"}), follow=True)
    verdict = decisions.newest_verdict(group)
    assert saved.status_code == 200 and "Your correction is saved" in saved.content.decode()
    assert verdict.author.username == "rita" and verdict.reason == "too wide"
    a = verdict.candidates.get(trajectory__letter="A")
    assert (a.scores["minimality"], a.tier) == (2, 2)
    approved = page.post(url("group-approve", group), {"verdict": verdict.pk}, follow=True)
    group.refresh_from_db()
    assert approved.status_code == 200 and group.state == GroupState.DECIDED
    assert group.decisions.get().verdict == verdict


def test_a_correction_of_the_order_needs_places_only(page, group):
    add_verdict(group, {"A": 5, "B": 5})  # tied
    cite = {"cite-1-letter": "B", "cite-1-about": "revision"}
    assert page.post(url("group-correct", group), form(group, **{"place-B": "2"}, **cite)).status_code == 302
    ranking = decisions.newest_verdict(group).ranking
    assert [len(tied) for tied in ranking["T1"]] == [1, 1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"score-A-minimality": "7"}, "from 1 to 5"),
        ({"reason": " "}, "needs a reason"),
        ({"cite-1-place": ""}, "needs a citation"),
        ({"score-A-minimality": "2", "cite-1-about": "approach"}, "no citation about it"),
        ({"score-A-minimality": "2", "cite-1-place": "nowhere.py:1"}, "the patch of A does not touch nowhere.py"),
        ({"cite-1-quote": "no such words"}, "about minimality: no changed line of app.py has these words, at line 2"),
    ],
)
def test_what_cannot_be_saved_comes_back_with_all_that_was_typed(page, group, changes, words):
    before = group.verdicts.count()
    answer = page.post(url("group-correct", group), form(group, **changes))
    html = answer.content.decode()
    assert answer.status_code == 400 and words in html and "Not saved." in html
    assert group.verdicts.count() == before
    for value in (changes.get("score-A-minimality"), changes.get("cite-1-place")):
        assert not value or f'value="{value}"' in html
    for trajectory in group.trajectories.all():
        assert trajectory.external_id not in html


def test_links_of_a_refused_page_lead_back_to_the_group(page, group):
    answer = page.get(url("group-correct", group), {"left": "C", "right": "D"})
    assert answer.url == url("group", group) + "?left=C&right=D"


def test_of_two_corrections_the_second_gets_a_page_with_both(page, group):
    mine = form(group, **{"score-A-minimality": "2"})
    other = Client()
    other.force_login(make_user(username="otto", role=Role.REVIEWER, team=group.run.team))
    theirs = form(group, **{"score-A-approach": "4", "reason": "theirs"})
    assert other.post(url("group-correct", group), theirs).status_code == 302
    answer = page.post(url("group-correct", group), mine)
    html = answer.content.decode()
    newest = decisions.newest_verdict(group)
    assert answer.status_code == 409 and "otto saved first" in html
    assert f'name="verdict" value="{newest.pk}"' in html
    assert re.search(r'name="score-A-minimality"[^>]*value="2"', html)  # mine
    assert re.search(r'name="score-A-approach"[^>]*value="4"', html)  # theirs
    assert newest.reason == "theirs"
    both = form(group, **{"score-A-minimality": "2"})
    assert page.post(url("group-correct", group), both).status_code == 302
    scores = decisions.newest_verdict(group).candidates.get(trajectory__letter="A").scores
    assert (scores["approach"], scores["minimality"]) == (4, 2)


def test_a_stale_approval_is_refused_with_409(page, group):
    seen = decisions.newest_verdict(group).pk
    add_verdict(group, {"A": 4, "B": 4})
    answer = page.post(url("group-approve", group), {"verdict": seen})
    assert answer.status_code == 409 and "newer verdict" in answer.content.decode()
    assert not group.decisions.exists()


@pytest.mark.parametrize("verdict", ["", "x", "-1"])
def test_an_approval_names_the_verdict_that_was_seen(page, group, verdict):
    assert page.post(url("group-approve", group), {"verdict": verdict}).status_code == 400


def test_a_draft_shows_where_the_cards_would_stand_and_saves_nothing(page, group):
    before = group.verdicts.count()
    answer = page.post(url("group-draft", group), form(group, **{"flag-A": "unrequested_rewrite"}))
    html = answer.content.decode()
    assert answer.status_code == 200 and "your draft, not saved" in html and group.verdicts.count() == before
    tier_3 = html.split("Tier 3")[1]
    assert 'id="card-A"' in tier_3


def test_a_leak_is_confirmed_with_a_place_and_withdrawn(page, group):
    where = {"cite-1-kind": "event", "cite-1-place": "0", "cite-1-quote": "cat hidden_tests.py"}
    fields = {"letter": "B", "kind": "leak", "reason": "read the hidden tests"}
    assert page.post(url("group-leak", group), fields | where).status_code == 302
    assert group.trajectories.get(letter="B").integrity == "leak"
    assert "confirmed leak" in page.get(url("group", group)).content.decode()
    assert page.post(url("group-leak", group), {"letter": "B", "kind": "", "reason": "its own file"}).status_code == 302
    assert group.trajectories.get(letter="B").integrity == ""


@pytest.mark.parametrize(
    "fields",
    [
        {"letter": "Z", "kind": "leak", "reason": "x"},
        {"letter": "B", "kind": "leak", "reason": "x"},
        {"letter": "B", "kind": "theft", "reason": "x"},
        {"letter": "B", "kind": "leak", "reason": "x", "cite-1-kind": "event", "cite-1-place": "none"},
    ],
)
def test_a_leak_without_evidence_is_refused_in_letters(page, group, fields):
    answer = page.post(url("group-leak", group), fields)
    assert answer.status_code == 400
    for trajectory in group.trajectories.all():
        assert trajectory.external_id not in answer.content.decode()
        assert trajectory.integrity == ""


def test_a_broken_task_ends_the_group(page, group):
    assert page.post(url("group-broken", group), {"reason": "the tests need the network"}).status_code == 302
    group.refresh_from_db()
    assert group.end_reason == "excluded_broken_evaluation"
    assert "quarantined" in page.get(url("group", group)).content.decode()
    assert page.post(url("group-broken", group), {"reason": "again"}).status_code == 409


def test_a_person_lets_the_group_fall_back(page, group):
    assert page.post(url("group-fall-back", group), {"reason": "cannot tell"}).status_code == 302
    decision = group.decisions.get()
    assert (decision.kind, decision.reason, decision.by) == (DecisionKind.FALLBACK, "cannot tell", "rita")


def test_who_holds_the_group_decides(page, group):
    queue.claim(group, user=make_user(username="otto", role=Role.REVIEWER, team=group.run.team))
    html = page.get(url("group", group)).content.decode()
    assert "otto holds this group" in html and url("group-approve", group) not in html
    assert page.post(url("group-approve", group), {"verdict": "1"}).status_code == 409
    assert page.post(url("group-claim", group)).status_code == 409


def test_a_viewer_sees_all_and_can_do_nothing(client, group):
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))
    html = client.get(url("group", group)).content.decode()
    assert "Tier 1" in html and "reviewer" in html
    for action in ("approve", "correct", "leak", "broken", "fall-back", "claim", "release", "draft"):
        assert url(f"group-{action}", group) not in html
        assert client.post(url(f"group-{action}", group)).status_code == 403


def test_a_post_from_another_site_is_refused(group, reviewer):
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(reviewer)
    answer = strict.post(url("group-fall-back", group), {"reason": "x"})
    assert answer.status_code == 403 and "Nothing was saved" in answer.content.decode()
    token = re.search(r'name="csrfmiddlewaretoken" value="([^"]+)"', strict.get(url("group", group)).content.decode())
    fields = {"reason": "x", "csrfmiddlewaretoken": token[1]}
    assert strict.post(url("group-fall-back", group), fields).status_code == 302


def test_real_ids_are_shown_once_the_group_is_decided(page, group):
    page.post(url("group-fall-back", group), {"reason": "x"})
    assert group.trajectories.get(letter="A").external_id in page.get(url("group", group)).content.decode()


def test_an_invalid_verdict_is_mended_by_a_person(page, group):
    # No score of B: its card waits for scores, and the form gives all of them.
    from grading.grader import gather, verdicts
    from grading.grader.parse import check
    from grading.grader.shape import GraderReply

    reply, material = GraderReply(()), gather.material_of(group)
    verdicts.store(group, reply, check(reply, material, group.run.rubric.rubric), material, grader="scripted")
    html = page.get(url("group", group)).content.decode()
    assert "No scores yet" in html and "Fallback." in html
    fields = {f"score-{letter}-{criterion}": "5" for letter in "AB" for criterion in CRITERIA}
    assert page.post(url("group-correct", group), form(group) | fields).status_code == 302
    assert decisions.newest_verdict(group).is_valid


@pytest.mark.parametrize("state", [GroupState.COLLECTING, GroupState.COMPLETE, GroupState.GRADING])
def test_a_group_without_a_verdict_has_a_page_too(page, group, state):
    early = make_group(run=group.run, state=state, outcomes="PF")
    answer = page.get(url("group", early))
    assert answer.status_code == 200 and "nothing to decide yet" in answer.content.decode()
    assert page.post(url("group-correct", early), {"reason": "x"}).status_code == 409


HOSTILE = "<img src=x onerror=alert(1)>\"'\u202e</script>"


def test_hostile_text_is_inert_on_every_page_of_a_group(page, reviewer):
    patch = PATCH.replace(b"return 42", f"return '{HOSTILE}'".encode()).replace(b"app.py", b"<img src=x>.py")
    run = make_run(team=reviewer.memberships.get().team, policy="manual")
    group = held_group(
        run=run, outcomes="PPF", patches=[patch, PATCH, patch], key=HOSTILE, hold_reason=HOSTILE,
        events=[{"kind": "action", "text": HOSTILE, "tool": HOSTILE, "args": {"c": HOSTILE}, "role": HOSTILE}],
    )  # fmt: skip
    group.task.statement = HOSTILE
    group.task.save()
    for trajectory in group.trajectories.all():
        trajectory.tests = [{"name": HOSTILE, "status": "failed", "message": HOSTILE}]
        trajectory.counts, trajectory.problem = {HOSTILE: HOSTILE}, HOSTILE
        trajectory.save()
    addresses = [url("group", group), url("history", group), reverse("queue"), reverse("groups"), reverse("tasks")]
    addresses += [f"{url('group', group)}?tab={tab}" for tab in ("events", "tests", "checks")]
    addresses += [f"{url('group', group)}?cite_letter=A&cite_kind=event&cite_place=0&cite_quote={HOSTILE}"]
    addresses += [url("trajectory", group, "A") + query for query in ("", "?at=0", f"?q={HOSTILE[:4]}&in=all")]
    addresses += [url("event", group, "A", 0), url("group-file", group, "A", 0)]
    for address in addresses:
        answer = page.get(address)
        assert answer.status_code == 200, address
        assert "<img" not in answer.content.decode(), address
    fields = form(group, reason=HOSTILE, **{"cite-1-quote": HOSTILE, "cite-1-place": HOSTILE})
    assert "<img" not in page.post(url("group-correct", group), fields).content.decode()
