"""The comparison's addresses over plain HTTP: what they show, what they cost, and to whom."""

import pytest
from django.urls import reverse

from grading import bodies
from grading.models import Check, Role
from grading.review.pages import aligned
from grading.review.pages.look import Look
from tests.browser.patched import candidates
from tests.browser.rooms import small_patch
from tests.factories import make_user
from tests.verdicts import add_verdict, held_group

pytestmark = pytest.mark.django_db


@pytest.fixture
def group():
    return held_group(outcomes="PPPFI", patches=candidates(), hold_reason="policy manual")


@pytest.fixture
def page(client, group):
    client.force_login(make_user(role=Role.VIEWER, team=group.run.team))
    return client


def shown(page, name: str, group, *args, query: str = "") -> str:
    answer = page.get(reverse(name, args=[group.pk, *args]) + query)
    assert answer.status_code == 200
    return answer.content.decode()


@pytest.mark.parametrize("query", ["tab=interdiff", "view=split&ws=ignore&folds=open&beside=results"])
def test_every_look_asks_few_questions(page, group, query, django_assert_max_num_queries):
    with django_assert_max_num_queries(20):
        assert page.get(f"{reverse('group', args=[group.pk])}?left=A&right=B&{query}").status_code == 200


def test_an_address_says_the_whole_look_and_reads_back():
    look = Look.of({"view": "split", "ws": "ignore"}, left="A", right="B", tab="interdiff")
    assert look.href() == "?left=A&right=B&tab=interdiff&view=split&ws=ignore"
    assert look.href(is_split=False, left="C") == "?left=C&right=B&tab=interdiff&ws=ignore"
    assert Look.of({"view": "sideways"}).view == "unified"


def test_a_file_of_the_interdiff_opens_as_a_page_and_a_pair_without_it_is_not_found(page, group):
    html = shown(page, "group-interdiff", group, "A", "B", 0, query="?view=split")
    assert "From the result of A to that of B" in html and "is-split" in html and 'id="A.B-f0-R5"' in html
    for args in (("A", "B", 9), ("A", "Z", 0)):
        assert page.get(reverse("group-interdiff", args=[group.pk, *args])).status_code == 404


def test_candidates_with_equal_results_say_so(page, group):
    html = shown(page, "group", group, query="?left=A&right=C&tab=interdiff&ws=ignore")
    assert "All its changes are hidden" not in html  # said once the file is opened
    same = held_group(run=group.run, outcomes="PP", patches=[candidates()[0]] * 2)
    html = shown(page, "group", same, query="?left=A&right=B&tab=interdiff")
    assert "leave every file the same" in html and "Equal in both results: src/cache.py." in html


def test_a_patch_is_saved_byte_by_byte_and_never_shown_as_a_page(page, group):
    answer = page.get(reverse("candidate-patch", args=[group.pk, "B"]))
    assert answer.content == candidates()[1] and answer["Content-Disposition"].startswith("attachment")
    assert page.get(reverse("candidate-patch", args=[group.pk, "E"])).status_code == 404


def test_text_instead_of_a_patch_is_shown_with_what_hides_in_it(page, group):
    text = b"RateLimitError: <b>429</b>\x1b[31m\ntry later\n"
    odd = held_group(run=group.run, outcomes="PP", patches=[text, candidates()[0]])
    html = shown(page, "group", odd, query="?left=A&right=B")
    assert "No diff in it" in html and "RateLimitError: &lt;b&gt;429&lt;/b&gt;⟨ESC⟩[31m\ntry later" in html


def test_what_a_check_printed_is_for_the_groups_team_and_runs_nothing(page, client, group):
    printed = b"\x1b[31mred\x1b[0m <script>alert(1)</script>\n" + b"x" * 300_000
    check = Check.objects.create(
        group=group, trajectory=group.trajectories.get(letter="A"), name="check:1", key="k", asked={}, outcome="failed",
        sandbox="bubblewrap", words="ended by itself", duration_s=0.1, output=bodies.write_bytes(printed),
        output_bytes=len(printed),
    )  # fmt: skip
    html = shown(page, "check-output", group, check.pk)
    assert "&lt;script&gt;" in html and "<script>alert" not in html and "Save the whole" in html
    assert page.get(reverse("check-output", args=[group.pk, check.pk]), {"part": "whole"}).content == printed
    client.force_login(make_user(role=Role.REVIEWER))
    assert client.get(reverse("check-output", args=[group.pk, check.pk])).status_code == 404


def many_files(count: int, answer: str) -> bytes:
    files = [
        f"diff --git a/m_{n}.py b/m_{n}.py\n--- a/m_{n}.py\n+++ b/m_{n}.py\n@@ -1 +1 @@\n-x = 1\n+x = {answer}{n}\n"
        for n in range(count)
    ]
    return "".join(files).encode()


def test_of_many_files_the_page_has_the_first_and_says_where_the_rest_is(page, group, monkeypatch):
    monkeypatch.setattr(aligned, "PAIRS_AT_ONCE", 4)
    patches = [many_files(9, "2"), many_files(11, "3")]
    wide = held_group(run=group.run, outcomes="PP", patches=patches)
    context = page.get(reverse("group", args=[wide.pk]) + "?left=A&right=B&view=split").context
    assert context["pair_words"] == "11 files, 9 touched by both"
    assert len(context["pairs"]) == 4 and context["rest"]["words"] == "Show 4 more files of 7"
    seen = [file["path"] for pair in context["pairs"] for file in pair]
    while rest := context["rest"]:
        assert "view=split" in rest["url"]
        part = page.get(rest["url"], headers={"HX-Request": "true"})
        assert "<html" not in part.content.decode() and "<html" in page.get(rest["url"]).content.decode()
        context = part.context
        seen += [file["path"] for pair in context["pairs"] for file in pair]
    assert sorted(seen) == sorted([f"m_{n}.py" for n in range(11)] * 2)
    assert "B does not" not in part.content.decode() and "Only B touches this file." in part.content.decode()


def test_of_many_files_those_that_are_cited_come_first(page, group, monkeypatch):
    monkeypatch.setattr(aligned, "PAIRS_AT_ONCE", 2)
    wide = held_group(run=group.run, outcomes="P", patches=[many_files(6, "2") + small_patch()])
    add_verdict(wide, {"A": 3})  # cites a line of app.py
    context = page.get(reverse("group", args=[wide.pk])).context
    assert [pair[0]["path"] for pair in context["pairs"]] == ["app.py", "m_0.py"]


def test_files_up_to_a_wanted_one_come_at_once_and_it_stands_open(page, group, monkeypatch):
    monkeypatch.setattr(aligned, "PAIRS_AT_ONCE", 4)
    wide = held_group(run=group.run, outcomes="PP", patches=[many_files(20, "2"), many_files(20, "3")])
    rest = page.get(reverse("group", args=[wide.pk]) + "?left=A&right=B").context["rest"]
    part = page.get(rest["url"] + "&to=B-f13", headers={"HX-Request": "true"})
    drawn = {file["id"]: bool(file["html"]) for pair in part.context["pairs"] for file in pair}
    assert [name for name, is_open in drawn.items() if is_open] == ["B-f13"]
    assert len(part.context["pairs"]) == 13 and "first=17" in part.context["rest"]["url"]
    assert 'id="B-f13-R1"' in part.content.decode()
    for nonsense in ("B-f99", "Z-f3", "x", "A-f1"):  # not there, not a file, or on the page already
        assert len(page.get(f"{rest['url']}&to={nonsense}").context["pairs"]) == 4
