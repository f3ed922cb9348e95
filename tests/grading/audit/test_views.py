"""Audit pages: opened, judged blind, revealed; W11 is tried on every response, header, address and socket message."""

import re
from datetime import timedelta

import pytest

from grading import clock
from grading.audit import sessions
from grading.models import Audit, AuditGroup, AuditVerdict, Trajectory
from grading.scoring.criteria import CRITERIA
from tests.factories import make_team, make_user
from tests.grading.audit.rooms import SECRETS, make_audit, make_runs

pytestmark = pytest.mark.django_db


@pytest.fixture
def runs():
    return make_runs(steps=(3, 8))


@pytest.fixture
def ann(runs, client):
    user = make_user(username="ann", role="reviewer", team=runs[0].team)
    client.force_login(user)
    return user


def verdict_form(group, **more):
    letters = group.candidates.values_list("letter", flat=True)
    return {f"{letter}-{c}": "4" for letter in letters for c in CRITERIA} | more


def take(client, audit) -> AuditGroup:
    client.post(f"/audits/{audit.pk}/next")
    return AuditGroup.objects.get(audit=audit, state="grading")


def test_an_audit_is_opened_judged_and_revealed_by_forms_alone(client, ann, runs):
    posted = {"run-0": runs[0].public_id, "run-1": runs[1].public_id, "grader": "person", "name": "why", "per_arm": "3"}
    answer = client.post("/new-audit", posted | {"task_count": "1", "windows": "0-5, 6-9", "seed": "7"})
    audit = Audit.objects.get()
    assert answer.status_code == 302 and audit.groups.count() == 2 and audit.seed == 7
    for left in (1, 0):
        group = take(client, audit)
        assert client.post(f"/audits/{audit.pk}/groups/{group.code}/", verdict_form(group)).status_code == 302
        assert audit.groups.exclude(state="done").count() == left
    assert b"Reveal who made what" in client.get(f"/audits/{audit.pk}/").content
    client.post(f"/audits/{audit.pk}/reveal")
    page = client.get(f"/audits/{audit.pk}/").content.decode()
    assert runs[0].name in page and "Win rate" in page and "Over the checkpoints" in page and page.count("<svg") > 8


def test_a_form_that_is_sent_twice_opens_one_audit_and_other_arms_open_another(client, ann, runs):
    posted = {"run-0": runs[0].public_id, "run-1": runs[1].public_id, "grader": "person"}
    first, second = (client.post("/new-audit", posted).headers["Location"] for _ in range(2))
    assert first == second and Audit.objects.count() == 1
    client.post("/new-audit", posted | {"name-0": "the first of them"})
    client.post("/new-audit", posted | {"windows": "0-5"})
    assert Audit.objects.count() == 3
    Audit.objects.update(created_at=clock.now() - timedelta(minutes=1))
    client.post("/new-audit", posted)
    assert Audit.objects.count() == 4


def test_a_form_that_says_nothing_comes_back_in_words_with_what_was_typed(client, ann, runs):
    answer = client.post("/new-audit", {"run-0": runs[0].public_id, "name": "half", "grader": "static"})
    assert answer.status_code == 400
    assert "2 to 8" in answer.content.decode() and 'value="half"' in answer.content.decode()
    posted = {"run-0": runs[0].public_id, "run-1": runs[1].public_id, "grader": "static"}
    answer = client.post("/new-audit", posted)
    assert answer.status_code == 400 and "online grader" in answer.content.decode()
    assert not Audit.objects.exists()


def test_a_verdict_that_is_not_whole_is_not_stored_and_nothing_typed_is_lost(client, ann, runs):
    audit = make_audit(runs=runs)
    group = take(client, audit)
    url = f"/audits/{audit.pk}/groups/{group.code}/"
    form = verdict_form(group, notes="hm <b>", **{"A-approach": "", "flag-B": "unrequested_rewrite", "place-A": "x"})
    answer = client.post(url, form)
    page = answer.content.decode()
    assert answer.status_code == 400 and "A has no score from 1 to 5 on approach" in page and "is no place" in page
    assert "hm &lt;b&gt;" in page and re.search(r'value="unrequested_rewrite" checked', page)
    looked = client.post(url, form | {"look": "right:C"})
    assert looked.status_code == 200 and "hm &lt;b&gt;" in looked.content.decode()
    assert 'aria-label="Candidates A and C"' in looked.content.decode()
    assert not AuditVerdict.objects.exists()


def test_a_person_cites_places_that_are_there_and_others_are_refused_in_words(client, ann, runs):
    audit = make_audit(runs=runs)
    group = take(client, audit)
    url = f"/audits/{audit.pk}/groups/{group.code}/"
    messy = group.candidates.filter(arm__number=1).first().letter
    good = {"letter": messy, "about": "minimality", "kind": "new", "place": "app.py:4", "quote": 'print("debug")'}
    bad = good | {"place": "app.py:99", "quote": "never written"}
    form = verdict_form(group) | {f"cite-1-{name}": value for name, value in bad.items()}
    refused = client.post(url, form)
    assert refused.status_code == 400 and "Citation 1:" in refused.content.decode()
    assert 'value="app.py:99"' in refused.content.decode() and not AuditVerdict.objects.exists()
    nobody = client.post(url, form | {"cite-1-letter": "Z"}).content.decode()
    assert "is no candidate here" in nobody
    client.post(
        url, form | {f"cite-1-{name}": value for name, value in good.items()} | {f"reason-{messy}": "left debug"}
    )
    (entry,) = [one for one in AuditVerdict.objects.get().reply["candidates"] if one["id"] == messy]
    assert (entry["citations"][0]["about"], entry["citations"][0]["line"]) == ("minimality", 4)
    said = f"{url}transcripts/1/"
    assert client.get(said).status_code == 404  # others have not judged yet
    client.force_login(make_user(username="boss", role="admin", team=audit.team))
    client.post(f"/audits/{audit.pk}/reveal", {"reason": "enough"})
    page = client.get(said).content.decode()
    assert "cites minimality: app.py:4" in page and "left debug" in page and "A person judged" in page
    assert said in client.get(f"/audits/{audit.pk}/").content.decode()


def test_two_results_are_compared_and_nothing_typed_is_lost_without_a_script(client, ann, runs):
    audit = make_audit(runs=runs)
    group = take(client, audit)
    url = f"/audits/{audit.pk}/groups/{group.code}/"
    one, other = (group.candidates.filter(arm__number=n).first().letter for n in (0, 1))
    same = group.candidates.filter(arm__number=0).exclude(letter=one).first().letter
    page = client.get(url, {"left": one, "right": other, "view": "between"}).content.decode()
    assert f"From the result of {one} to that of {other}" in page and "debug again" in page
    part = client.get(url, {"left": one, "right": same, "view": "between"}, headers={"HX-Request": "true"})
    assert b"No difference" in part.content and b"<html" not in part.content
    form = {"left": one, "right": other, "A-approach": "2", "notes": "hm"}
    looked = client.post(url, form | {"look": "view:between"}).content.decode()
    assert "From the result of" in looked and 'value="2"' in looked and "hm" in looked
    looked = client.post(url, form | {"view": "between", "look": "view:patches"}).content.decode()
    assert "audit-columns" in looked and not AuditVerdict.objects.exists()


def test_a_place_against_the_tiers_is_refused_with_the_reason(client, ann, runs):
    audit = make_audit(runs=make_runs(team=runs[0].team, tasks=1, outcomes=("P", "P"), patches=(b"", b"x")))
    group = take(client, audit)
    form = verdict_form(group, **{"A-approach": "1", "place-A": "1", "place-B": "2"})
    answer = client.post(f"/audits/{audit.pk}/groups/{group.code}/", form)
    assert answer.status_code == 400 and "better tier" in answer.content.decode()


def test_a_group_is_open_only_to_who_has_it_in_front_of_them(client, ann, runs):
    audit = make_audit(runs=runs)
    group = audit.groups.first()
    assert client.get(f"/audits/{audit.pk}/groups/{group.code}/").status_code == 403
    group = take(client, audit)
    assert client.get(f"/audits/{audit.pk}/groups/{group.code}/").status_code == 200
    AuditGroup.objects.filter(pk=group.pk).update(claimed_until=clock.now() - timedelta(seconds=1))
    bob = make_user(username="bob", role="reviewer", team=runs[0].team)
    assert sessions.next_group(audit, bob).pk == group.pk
    late = client.post(f"/audits/{audit.pk}/groups/{group.code}/", verdict_form(group))
    assert late.status_code == 403


def test_another_team_finds_nothing(client, ann, runs):
    audit = make_audit(runs=runs)
    group = take(client, audit)
    client.force_login(make_user(role="admin", team=make_team()))
    for url in ("", "next", "reveal", "again", f"groups/{group.code}/", f"groups/{group.code}/candidates/A/events"):
        method = client.post if url in ("next", "reveal", "again") else client.get
        assert method(f"/audits/{audit.pk}/{url}").status_code == 404, url
    assert str(audit.title) not in client.get("/audits/").content.decode()


def test_a_viewer_reads_and_does_nothing(client, runs):
    audit = make_audit(runs=runs)
    client.force_login(make_user(role="viewer", team=runs[0].team))
    page = client.get(f"/audits/{audit.pk}/").content.decode()
    assert "Blind" in page and "<form" not in page.partition('id="main"')[2].partition("</main>")[0]
    assert client.post(f"/audits/{audit.pk}/next").status_code == 403


def test_an_early_reveal_is_an_admins_with_a_reason_that_stays(client, ann, runs):
    audit = make_audit(runs=runs)
    assert client.post(f"/audits/{audit.pk}/reveal", {"reason": "I wonder"}).status_code == 409
    client.force_login(make_user(username="root", role="admin", team=runs[0].team))
    assert client.post(f"/audits/{audit.pk}/reveal").status_code == 400
    client.post(f"/audits/{audit.pk}/reveal", {"reason": "a release is due"})
    page = client.get(f"/audits/{audit.pk}/").content.decode()
    assert "Revealed before the end" in page and "a release is due" in page and "root" in page
    assert "nothing to count it from" in page


def forbidden_words(audit) -> set[str]:
    """Whatever would tell an arm: names, ids, policies, methods, keys of rows and bodies."""
    rows = Trajectory.objects.filter(group__run__in=audit.arms.values("run"))
    words = set(SECRETS) | {audit.name} | set(audit.arms.values_list("name", flat=True))
    words |= set(rows.values_list("external_id", flat=True)) | set(rows.values_list("group__key", flat=True))
    words |= set(rows.values_list("event_body", flat=True)) | set(rows.values_list("patch", flat=True))
    return words | {"policy-v77"}


def test_blindness_holds_in_every_response_address_and_header_until_the_reveal(client, ann, runs):
    audit = make_audit(runs=runs, windows=[(0, 5), (6, 9)])
    group = take(client, audit)
    base = f"/audits/{audit.pk}/groups/{group.code}"
    htmx = {"HX-Request": "true"}
    seen = [
        client.get("/audits/"),
        client.get(f"/audits/{audit.pk}/"),
        client.get(f"/audits/{audit.pk}/", headers=htmx),
    ]
    seen += [client.get(f"{base}/"), client.get(f"{base}/?left=B&right=D", headers=htmx), client.post(f"{base}/", {})]
    seen += [client.get(f"{base}/?left=A&right=B&view=between", headers=h) for h in ({}, htmx)]
    for letter in group.candidates.values_list("letter", flat=True):
        seen += [client.get(f"{base}/candidates/{letter}/events", headers=h) for h in ({}, htmx)]
        seen.append(client.get(f"{base}/?left={letter}"))
    seen += [client.get(f"{base}/candidates/ZZ/events"), client.post(f"/audits/{audit.pk}/reveal")]
    seen.append(client.post(f"{base}/", verdict_form(group)))
    forbidden = forbidden_words(audit) | {word.upper() for word in SECRETS}
    assert len(seen) > 20
    for answer in seen:
        text = answer.content.decode() + str(dict(answer.headers)) + str(answer.cookies)
        found = [word for word in forbidden if word and word in text]
        assert not found, (answer.request["PATH_INFO"], found)
    pages = b"".join(answer.content for answer in seen).decode()
    assert f"/groups/{group.task.groups.first().pk}/" not in pages  # no link to where a rollout came from
    assert not re.search(r'href="/runs/[^"]+"', pages)


def test_the_order_of_columns_and_rows_is_that_of_the_letters(client, ann, runs):
    audit = make_audit(runs=runs)
    group = take(client, audit)
    page = client.get(f"/audits/{audit.pk}/groups/{group.code}/").content.decode()
    rows = re.findall(r'name="([A-Z])-approach"', page)
    assert f"Group {group.place + 1} of {audit.groups.count()}" in page
    assert rows == sorted(rows) and len(rows) == group.candidates.count()


def test_opening_an_audit_says_nothing_on_a_run_s_socket(runs, django_capture_on_commit_callbacks):
    """What pages hear over the socket is that a run changed: an audit rings no run at all."""
    with django_capture_on_commit_callbacks() as rung:
        audit = make_audit(runs=runs)
        user = make_user(username="eve", role="reviewer", team=runs[0].team)
        group = sessions.next_group(audit, user)
        sessions.release(group, user=user)
    assert not any("pages" in str(getattr(call, "args", "")) for call in rung)


def test_the_api_knows_no_audit(client, ann, runs):
    audit = make_audit(runs=runs)
    schema = client.get("/api/v1/schema/").content.decode()
    assert "audits" not in schema.replace("purpose", "") and f"audit {audit.pk}" not in schema
