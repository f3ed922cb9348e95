"""Comments on a group, and what a history says of a correction, an order and an answer."""

import pytest
from django.urls import reverse

from grading.errors import BadInput, FrozenRow
from grading.grader.shape import Cited
from grading.models import Comment, Role
from grading.review import blind, comments, decisions, reviews
from grading.review.pages.history import changes, history_page
from grading.review.pages.sitting import Sitting
from tests.factories import make_user
from tests.verdicts import held_group, line_of

pytestmark = pytest.mark.django_db
MARKUP = "<script>alert(1)</script> **bold** [x](javascript:alert(2))\nsecond line"


@pytest.fixture
def group():
    return held_group(outcomes="PPF", hold_reason="policy manual")


def person(group, name: str):
    return make_user(username=name, role=Role.REVIEWER, team=group.run.team)


def test_a_comment_is_text_with_its_author_and_never_html(client, group):
    alice = person(group, "alice")
    client.force_login(alice)
    answer = client.post(reverse("group-comment", args=[group.pk]), {"text": MARKUP})
    assert answer.status_code == 302 and Comment.objects.get().author == alice
    for page in ("group", "history"):
        said = client.get(reverse(page, args=[group.pk])).content.decode()
        assert "&lt;script&gt;alert(1)&lt;/script&gt; **bold** [x](javascript:alert(2))<br>second line" in said, page
        assert "<script>alert" not in said and 'href="javascript' not in said


@pytest.mark.parametrize("text", ["", "  \n", "x" * 10_001])
def test_an_empty_or_endless_comment_is_refused(group, text):
    with pytest.raises(BadInput):
        comments.add(group, user=person(group, "alice"), text=text)


def test_a_comment_is_never_edited(group):
    comment = comments.add(group, user=person(group, "alice"), text="first")
    comment.text = "second"
    with pytest.raises(FrozenRow):
        comment.save()


def test_others_comments_stay_hidden_as_long_as_their_answers_do(client):
    group = held_group(outcomes="PPF", reviews_wanted=2, hold_reason="policy manual")
    alice, bob = person(group, "alice"), person(group, "bob")
    comments.add(group, user=alice, text="A is far too wide")
    client.force_login(bob)
    addresses = [reverse(page, args=[group.pk]) for page in ("group", "history")]
    assert all("far too wide" not in client.get(address).content.decode() for address in addresses)
    seen = decisions.newest_verdict(group).pk
    reviews.submit(group, parent=seen, user=bob, reason="", scores={}, flags={}, is_right=True)
    assert all("far too wide" in client.get(address).content.decode() for address in addresses)


def test_a_history_says_what_a_correction_changed_from_what_to_what(group):
    alice, first = person(group, "alice"), decisions.newest_verdict(group)
    a = group.trajectories.get(letter="A")
    cited = {a.external_id: [Cited("minimality", line_of(a)), Cited("unrequested_rewrite", line_of(a))]}
    edits = {"scores": {a.external_id: {"minimality": 2}}, "flags": {a.external_id: {"unrequested_rewrite": True}}}
    made = reviews.correct(group, parent=first.pk, user=alice, reason="too wide", citations=cited, **edits)
    sitting = Sitting(group, alice)
    assert changes(sitting, first, made) == [
        "A minimality: 4 → 2",
        "A unrequested rewrite: – → set",
        "A tier, place: T1, 1 → T3, 1",
    ]
    row = next(row for row in history_page(sitting)["rows"] if row["what"] == "correction")
    assert row["old"] in ("A=B | – | –", "B=A | – | –") and row["new"] == "B | – | A"
    assert changes(sitting, None, first) == []


def test_a_history_has_orders_given_blind_and_answers_given_alone():
    group = held_group(outcomes="PPF", reviews_wanted=2, is_blind=True, hold_reason="policy manual")
    alice, ids = person(group, "alice"), dict(group.trajectories.values_list("letter", "external_id"))
    blind.give_order(group, user=alice, order=[[ids["B"]], [ids["A"]]], notes="B is plainer")
    seen = decisions.newest_verdict(group).pk
    reviews.submit(group, parent=seen, user=alice, reason="fine", scores={}, flags={}, is_right=True)
    rows = {row["what"]: row for row in history_page(Sitting(group, alice))["rows"]}
    order = rows["order before the verdict"]
    assert (order["new"], order["why"]) == ("B > A", "B is plainer")
    assert rows["review: right"]["why"] == "fine"
    other = {row["what"] for row in history_page(Sitting(group, person(group, "bob")))["rows"]}
    assert not other & {"order before the verdict", "review: right", "verdict"}
