"""Two results are compared over the task's repository where a grading has fetched it; what does not fit is said."""

import pytest
from django.urls import reverse

from grading.grader.repository import base_of
from grading.models import Role
from tests.factories import make_run, make_user
from tests.grading.grader.repositories import stored_task, tar
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db

LINES = [f"base_{n}" for n in range(30)]


def changed(at: int, to: str, was: str = "") -> bytes:
    head = "diff --git a/app.py b/app.py\n--- a/app.py\n+++ b/app.py\n"
    above, below = f" {LINES[at - 1]}\n", f" {LINES[at + 1]}\n"
    return f"{head}@@ -{at},3 +{at},3 @@\n{above}-{was or LINES[at]}\n+{to}\n{below}".encode()


def compared(client, patches: list[bytes], *, is_fetched: bool):
    files = {"app.py": "\n".join([*LINES, ""]), "fetched.txt": str(is_fetched)}  # a mirror is kept by its content
    task = stored_task(tar(files, mode="w"))
    if is_fetched:
        base_of(task)
    group = held_group(run=make_run(team=task.team, policy="manual"), task=task, outcomes="PP", patches=patches)
    client.force_login(make_user(role=Role.REVIEWER, team=task.team))
    whole = client.get(reverse("group", args=[group.pk]) + "?left=A&right=B&tab=interdiff").content.decode()
    return whole, client.get(reverse("group-interdiff", args=[group.pk, "A", "B", 0])).content.decode()


def test_a_file_is_compared_whole_over_the_base_and_its_lines_lead_to_the_patches(client):
    page, rows = compared(client, [changed(3, "left"), changed(20, "right")], is_fetched=True)
    assert "compared whole, over the base commit" in page and "does not apply" not in page
    assert "base_0" in rows  # context that no patch shows
    for cites in ("A new 4", "A old 4", "B new 21", "B old 21"):
        assert f'data-cites="{cites}"' in rows


def test_without_the_repository_nothing_is_guessed(client):
    page, rows = compared(client, [changed(3, "left"), changed(20, "right")], is_fetched=False)
    assert "nothing is guessed" in page and "base_0" not in rows and 'data-cites="A new 4"' in rows


def test_a_patch_that_does_not_apply_is_said_in_gits_words_and_compared_from_the_patches(client):
    page, rows = compared(client, [changed(3, "left"), changed(20, "right", was="other")], is_fetched=True)
    assert "The patch of B does not apply to the base commit: error: patch failed: app.py:20" in page
    assert 'data-cites="B new 21"' in rows and "The patch of A does not" not in page
