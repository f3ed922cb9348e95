"""The review page and its actions, over plain HTTP: no script is needed for any of them."""

import re

import pytest
from django.test import Client

from grading.models import ReviewClaim, Role
from grading.review import decisions, queue
from grading.review.pages.sitting import Sitting
from grading.states import DecisionKind, GroupState
from tests.factories import make_run, make_user
from tests.grading.review.group_page.forms import form, url
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db


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


def test_of_two_stale_tabs_the_second_decision_is_refused_and_says_what_counts(page, group):
    seen = {"verdict": group.verdicts.last().pk, "version": 0}
    assert page.post(url("group-approve", group), seen).status_code == 302
    refused = page.post(url("group-fall-back", group), {"version": 0, "reason": "neither"})
    html = refused.content.decode()
    assert refused.status_code == 409 and "was decided meanwhile, by rita: version 1, verdict, counts now." in html
    assert "Your page still showed no decision. Open the group again" in html and ", expected" not in html
    assert [decision.kind for decision in group.decisions.all()] == ["verdict"]
    assert page.post(url("group-fall-back", group), {"version": 1, "reason": "neither"}).status_code == 302
    assert page.post(url("group-approve", group), seen | {"version": 1}).status_code == 409
    assert [decision.kind for decision in group.decisions.all()] == ["verdict", "fallback"]
    html = page.get(url("group", group)).content.decode()
    assert '<input type="hidden" name="version" value="2">' in html


def test_who_holds_the_group_decides(page, group):
    queue.claim(group, user=make_user(username="otto", role=Role.REVIEWER, team=group.run.team))
    html = page.get(url("group", group)).content.decode()
    assert "otto holds this group" in html and url("group-approve", group) not in html
    assert page.post(url("group-approve", group), {"verdict": "1"}).status_code == 409
    assert page.post(url("group-claim", group)).status_code == 409


def test_a_claim_that_comes_while_a_draft_is_drawn_leaves_the_fields_open(page, group):
    ReviewClaim.take(group, make_user(username="quick", role=Role.REVIEWER, team=group.run.team))
    fields = {"verdict": decisions.newest_verdict(group).pk, "score-A-minimality": "2"}
    drawn = page.post(url("group-draft", group), fields).content.decode()
    assert 'value="2"' in drawn and " disabled" not in drawn
