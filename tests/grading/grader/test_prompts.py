"""Prompts are frozen: who changes a published file publishes the next version instead."""

import json

import pytest

from grading.grader.prompts import FOLDER, digest, manifest, prompt
from grading.grader.wire import from_json
from grading.scoring.criteria import CRITERIA, FLAGS

WORDS_CHARS = 20_000


def test_no_published_file_was_changed():
    for name, sha256 in manifest()["files"].items():
        now = digest((FOLDER / name).read_bytes())
        assert now == sha256, f"{name} was published: write the next version beside it ({now})"


def test_every_file_is_in_the_manifest_and_every_part_is_a_file():
    files = {path.name for path in FOLDER.iterdir() if path.name != "manifest.json"}
    assert files == set(manifest()["files"])
    for name, parts in manifest()["prompts"].items():
        assert set(parts) <= files, name


def test_a_prompt_is_named_with_its_version_and_digest():
    said = prompt("single_pass")
    assert said.name.startswith("single_pass@")
    assert said.name.endswith(digest(said.text.encode())[:8])
    assert len(said.name) <= 80
    assert prompt("single_pass", 1).name.startswith("single_pass@1:")
    with pytest.raises(KeyError):
        prompt("nobodys")


@pytest.mark.parametrize("name", sorted({key.partition("@")[0] for key in manifest()["prompts"]}))
def test_every_grading_prompt_names_all_criteria_flags_and_kinds_of_evidence(name):
    text = prompt(name).text
    for word in (*CRITERIA, *FLAGS, "patch_line", "event", "result", "outcome", "leak", "hack", "injection"):
        assert word in text, word
    assert len(text) < WORDS_CHARS


def test_the_verdict_that_the_prompt_shows_is_one_that_we_read():
    text = (FOLDER / "verdict.1.md").read_text("utf-8")
    example = json.loads(text.partition("```\n")[2].partition("```")[0])
    reply = from_json(example)
    assert set(reply.candidates[0].scores) == set(CRITERIA)
    assert set(reply.candidates[0].flags) == set(FLAGS)
