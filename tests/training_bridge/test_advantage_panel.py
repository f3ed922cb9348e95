"""What training gets, as the review page shows it, is what is delivered."""

import json

import pytest

from grading.models import Verdict
from grading.review import corrections, decisions, findings
from grading.review.correction_form import read_form
from grading.review.drafts import draft_of, stand
from grading.states import DecisionKind, GroupState, Method, Policy
from tests.factories import make_group, make_run, make_task, make_team, make_user
from tests.verdicts import add_verdict, line_of
from training_bridge import advantage_panel, delivery, intake
from training_bridge.models import Delivery
from training_bridge.protocol import messages

pytestmark = pytest.mark.django_db
HTMX = {"HX-Request": "true"}


def graded_group(*, outcomes="PPPF", scores=None, run=None, **fields):
    group = make_group(run=run or make_run(policy=Policy.MANUAL), state=GroupState.GRADED, outcomes=outcomes, **fields)
    return group, add_verdict(group, scores)


def delivered_rows(run) -> dict[str, dict]:
    """The newest delivered row of each rollout, by its letter."""
    delivery.deliver(run)
    text = Delivery.objects.filter(stream__run=run).order_by("-seq").values_list("text", flat=True)[0]
    return {row["trajectory"]: row for row in json.loads(text)["rows"]}


def by_letter(group, panel: dict) -> dict[str, dict]:
    ids = dict(group.trajectories.values_list("letter", "external_id"))
    return {ids[row["letter"]]: row for row in panel["rows"]}


def form(verdict: Verdict, **fields) -> dict[str, list[str]]:
    return {"verdict": [str(verdict.pk)]} | {name.replace("_in_", "-"): [value] for name, value in fields.items()}


def assert_shows(panel_rows: dict[str, dict], delivered: dict[str, dict]) -> None:
    assert panel_rows.keys() == delivered.keys()
    for id, row in delivered.items():
        shown = panel_rows[id]
        assert (shown["after"], shown["factor"]) == (row["advantage"], row["factor"])
        assert (shown["reward"], shown["outcome"]) == (row["reward"], row["outcome"])


def test_the_panel_of_a_verdict_shows_the_numbers_that_approving_it_delivers():
    group, verdict = graded_group(scores={"A": 5, "B": 4, "C": 3})
    shown = advantage_panel.standing_panel(group)
    # R = (1, 1, 1, 0): A = 1/4 on passes, S+ = 3/4. T1: 1, 0.9; T2: 0.85. lambda = 3 / 2.75 = 12/11
    assert shown["lam"] == pytest.approx(12 / 11) and shown["wanted"] == pytest.approx(12 / 11)
    assert shown["words"] == "0.409 below the cap" and shown["regime"] == "exact"
    assert [row["letter"] for row in shown["rows"]] == ["A", "B", "C", "D"]
    assert [row["before"] for row in shown["rows"]] == [0.25, 0.25, 0.25, -0.75]
    assert shown["sums_kept"] and shown["credit_kept"] == pytest.approx(1) and shown["penalty_kept"] == pytest.approx(1)
    decisions.approve(group, seen_verdict=verdict.pk, user=make_user())
    assert_shows(by_letter(group, shown), delivered_rows(group.run))
    group.refresh_from_db()
    assert advantage_panel.standing_panel(group) == shown, "the decision shows what the verdict showed"


def test_a_binding_cap_says_what_was_needed_and_that_the_sums_are_not_kept():
    group, _ = graded_group(outcomes="PF", scores={"A": 2})
    shown = advantage_panel.standing_panel(group)
    # a lone T3 pass: f = 0.2, lambda wanted 5, bound 1.5: B = (0.15, -0.5), mean -0.175, so A = (0.325, -0.325)
    assert (shown["regime"], shown["lam"], shown["cap"]) == ("bounded", 1.5, 1.5)
    assert shown["wanted"] == pytest.approx(5) and shown["words"] == "needed 5.00"
    assert [row["after"] for row in shown["rows"]] == pytest.approx([0.325, -0.325])
    assert not shown["sums_kept"] and shown["sums_words"] == "sums not kept: −0.175 on passes"
    assert shown["credit_kept"] == pytest.approx(0.65)


def test_a_draft_shows_exactly_what_saving_and_approving_it_delivers():
    group, verdict = graded_group(scores={"A": 5, "B": 4, "C": 4})
    user = make_user()
    edits = {"verdict": [str(verdict.pk)], "score-A-minimality": ["3"], "reason": ["rewrites too much"]}
    edits |= {
        "cite-1-letter": ["A"],
        "cite-1-about": ["minimality"],
        "cite-1-kind": ["new"],
        "cite-1-place": ["app.py:2"],
    }
    shown = advantage_panel.draft_panel(group, edits)
    assert shown["is_draft"] and shown["error"] == ""
    assert Verdict.objects.count() == 1 and not Delivery.objects.exists(), "a draft saves nothing"
    draft = draft_of(stand(group), read_form(edits))
    saved = corrections.correct(
        group, parent=verdict.pk, user=user, reason=draft.reason, scores=draft.scores, flags=draft.flags,
        order=draft.order, citations=draft.citations,
    )  # fmt: skip
    decisions.approve(group, seen_verdict=saved.pk, user=user)
    assert_shows(by_letter(group, shown), delivered_rows(group.run))
    assert shown["rows"][0]["letter"] == "B", "in the order of the draft"


def test_a_form_that_edits_nothing_is_no_draft():
    group, verdict = graded_group(scores={"A": 5, "B": 2, "C": 4})
    standing = advantage_panel.standing_panel(group)
    assert advantage_panel.draft_panel(group, form(verdict)) == standing
    assert advantage_panel.draft_panel(group, form(verdict, reason="too wide")) == standing


def test_a_draft_with_an_unreadable_score_says_so_instead_of_numbers():
    group, verdict = graded_group()
    shown = advantage_panel.draft_panel(group, {"verdict": [str(verdict.pk)], "score-A-precision": ["9"]})
    assert "A precision" in shown["error"] and shown["rows"] == []


def test_a_half_typed_citation_does_not_hide_the_numbers():
    group, verdict = graded_group()
    typed = {"verdict": [str(verdict.pk)], "cite-1-letter": ["A"], "cite-1-kind": ["new"], "cite-1-place": ["app"]}
    assert advantage_panel.draft_panel(group, typed)["error"] == ""


def test_a_group_without_a_verdict_shows_the_outcome_advantages_it_would_fall_back_to():
    group = make_group(state=GroupState.COMPLETE, outcomes="PFI")
    shown = advantage_panel.standing_panel(group)
    assert (shown["regime"], shown["words"], shown["lam"]) == ("fallback", "no verdict yet", None)
    assert [(row["letter"], row["after"]) for row in shown["rows"]] == [("A", 0.5), ("B", -0.5), ("C", 0.0)]
    assert advantage_panel.draft_panel(group, {})["error"] == "There is no verdict to correct yet."


def test_a_collecting_group_has_no_numbers():
    group = make_group(outcomes="PF")
    shown = advantage_panel.standing_panel(group)
    assert shown["error"].startswith("The group is still collecting") and shown["rows"] == []


@pytest.mark.parametrize(
    ("kind", "reason", "regime", "words"),
    [
        (DecisionKind.FALLBACK, "deadline", "fallback", "the deadline passed without a verdict that counts"),
        (DecisionKind.FALLBACK, "too odd to judge", "fallback", "too odd to judge"),
        (DecisionKind.BASELINE, "", "baseline", "method redistribute"),
        (DecisionKind.ABANDONED, "", "excluded", "abandoned"),
    ],
)
def test_every_other_decision_is_said_in_words(kind, reason, regime, words):
    group = make_group(state=GroupState.GRADED, outcomes="PPF")
    end = "abandoned" if kind == DecisionKind.ABANDONED else ""
    decisions.decide(group, kind, by="test", reason=reason, end_reason=end)
    shown = advantage_panel.standing_panel(group)
    assert (shown["regime"], shown["words"]) == (regime, words)
    assert_shows(by_letter(group, shown), delivered_rows(group.run))


def test_a_confirmed_leak_counts_as_failed_on_the_panel_and_in_the_delivery():
    group, verdict = graded_group(scores={"A": 5, "B": 4, "C": 4})
    leaked = group.trajectories.get(letter="C")
    findings.confirm(leaked, kind="leak", reason="read the fix", citations=[line_of(leaked)], user=make_user())
    group.refresh_from_db()
    shown = advantage_panel.standing_panel(group)
    # R = (1, 1, 0, 0): 1/2 on passes; f = (1, 0.9), lambda = 20/19
    row = by_letter(group, shown)[leaked.external_id]
    assert (row["passed"], row["integrity"], row["before"], row["after"]) == (False, "leak", -0.5, -0.5)
    assert shown["lam"] == pytest.approx(20 / 19)
    decisions.approve(group, seen_verdict=decisions.newest_verdict(group).pk, user=make_user())
    assert_shows(by_letter(group, shown), delivered_rows(group.run))


def test_shaped_rewards_and_downweighting_show_their_own_sums():
    run = make_run(method=Method.DOWNWEIGHT_ONLY, policy=Policy.MANUAL)
    group, verdict = graded_group(run=run, outcomes="PPF", scores={"A": 5, "B": 3})
    shown = advantage_panel.standing_panel(group)
    # A = (1/3, 1/3, -2/3), f = (1, 0.85): credit kept = 1.85 / 2
    assert (shown["regime"], shown["lam"], shown["words"]) == ("baseline", None, "method downweight only")
    assert shown["credit_kept"] == pytest.approx(0.925) and not shown["sums_kept"]
    decisions.approve(group, seen_verdict=verdict.pk, user=make_user())
    assert_shows(by_letter(group, shown), delivered_rows(run))


def test_a_bad_reward_and_a_broken_task_are_zero_and_say_why():
    group = make_group(state=GroupState.GRADED, outcomes="PPF", task=make_task(is_broken=True))
    shown = advantage_panel.standing_panel(group)
    assert shown["regime"] == "excluded" and {row["after"] for row in shown["rows"]} == {0.0}
    assert shown["words"] == "excluded broken evaluation"
    bad = make_group(state=GroupState.GRADED, outcomes="PPF")
    bad.trajectories.filter(letter="A").update(reward="1e308")
    bad.trajectories.filter(letter="B").update(reward="NaN")
    shown = advantage_panel.standing_panel(bad)
    assert shown["words"] == "excluded bad reward" and {row["after"] for row in shown["rows"]} == {0.0}


def test_the_view_shows_a_part_to_htmx_and_saves_nothing(client):
    group, verdict = graded_group(scores={"A": 5, "B": 4, "C": 3})
    user = make_user(role="viewer", team=group.run.team)
    client.force_login(user)
    shown = client.get(f"/groups/{group.pk}/advantages", headers=HTMX).content.decode()
    assert "What training gets" in shown and 'id="advantage-A"' in shown and "<html" not in shown
    edited = form(verdict, score_in_A_in_precision="3")
    posted = client.post(f"/groups/{group.pk}/advantages", edited, headers=HTMX).content.decode()
    assert "with your draft" in posted and Verdict.objects.count() == 1
    whole = client.get(f"/groups/{group.pk}/advantages").content.decode()
    assert "<html" in whole and "Reward" in whole, "without JavaScript it is a page of its own"


def test_another_team_finds_neither_panel_nor_deliveries(client):
    group, verdict = graded_group()
    stranger = make_user(role="admin", team=make_team())
    client.force_login(stranger)
    for path in ("advantages", "deliveries"):
        assert client.get(f"/groups/{group.pk}/{path}", headers=HTMX).status_code == 404
    assert client.post(f"/groups/{group.pk}/advantages", form(verdict), headers=HTMX).status_code == 404
    client.logout()
    assert client.get(f"/groups/{group.pk}/advantages").status_code == 302


def test_the_work_of_a_panel_does_not_grow_with_the_rollouts(client, django_assert_max_num_queries):
    user = make_user(is_superuser=True)
    client.force_login(user)
    for outcomes in ("PF", "PPPPPPPPPPPPFFFF"):
        group, verdict = graded_group(outcomes=outcomes)
        with django_assert_max_num_queries(9):
            client.get(f"/groups/{group.pk}/advantages", headers=HTMX)
        with django_assert_max_num_queries(9):
            client.post(f"/groups/{group.pk}/advantages", form(verdict, score_in_A_in_precision="3"), headers=HTMX)


def test_deliveries_show_each_version_with_its_receipts_and_the_jobs_own_numbers(client):
    group, verdict = graded_group()
    user = make_user(role="viewer", team=group.run.team)
    decisions.approve(group, seen_verdict=verdict.pk, user=user)
    delivery.deliver(group.run)
    group.refresh_from_db()
    decisions.fall_back(group, user=user, reason="on second thoughts")
    delivery.deliver(group.run)
    said = [(0, "applied", 3), (1, "too_late", 4)]
    intake.note(group.life, [
        messages.Receipt(n=n, life=group.life.n, group=group.key, version=version, status=status, step=step)
        for n, (version, status, step) in enumerate(said, 1)
    ])  # fmt: skip
    client.force_login(user)
    page = client.get(f"/groups/{group.pk}/deliveries", headers=HTMX).content.decode()
    assert "too late at step 4" in page and "superseded" in page and "none yet" in page
    assert "its own outcome advantages were applied at step 3" in page
