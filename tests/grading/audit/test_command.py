"""`manage.py audit` opens, judges, hands out, takes in and prints."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from grading.models import AuditGroup
from tests.grading.audit.rooms import SECRETS, make_runs
from tests.model_scripts import verdict

pytestmark = pytest.mark.django_db


def audit(*args, **options) -> str:
    out = StringIO()
    call_command("audit", *args, stdout=out, stderr=out, **options)
    return out.getvalue()


def test_two_runs_are_compared_in_one_command():
    runs = make_runs(tasks=3, method="outcome", outcomes=("PPP", "PPF"))
    names = [run.public_id for run in runs]
    said = audit(runs=names, grader="static", judge=True, reveal=True, seed=4)
    assert "3 of 3 groups judged, seed 4" in said and "Win rate" in said and "100.0 %" in said and "n 9" in said
    found = json.loads(audit(json=True))
    assert found["tables"][0]["rows"][0]["key"] == "W"


def test_a_program_of_the_team_s_own_gets_blind_groups_and_gives_verdicts(tmp_path):
    names = [run.public_id for run in make_runs(tasks=2)]
    asked, answered = tmp_path / "questions.jsonl", tmp_path / "answers.jsonl"
    audit(runs=names, grader="our-own", questions=str(asked))
    text = asked.read_text()
    assert not [word for word in SECRETS if word in text]
    rows = [json.loads(line) for line in text.splitlines()]
    said = [verdict({c["id"]: 5 if c["outcome"] == "passed" else 2 for c in row["candidates"]}) for row in rows]
    lines = [json.dumps({"group": row["group"], **reply}) for row, reply in zip(rows, said, strict=True)]
    answered.write_text("\n".join(lines))
    first = audit(answers=str(answered))
    assert "have the same patch" in first  # a twin that failed has other scores: refused, and said
    AuditGroup.objects.update(state="waiting")
    tied = [verdict({c["id"]: 4 for c in row["candidates"]}) for row in rows]
    answered.write_text("\n".join(json.dumps({"group": r["group"], **v}) for r, v in zip(rows, tied, strict=True)))
    assert "2 of 2 groups judged" in audit(answers=str(answered), reveal=True)


def test_what_cannot_be_audited_is_said_in_words(tmp_path):
    with pytest.raises(CommandError, match="no run nobody"):
        audit(runs=["nobody"])
    names = [run.public_id for run in make_runs()]
    with pytest.raises(CommandError, match="online grader"):
        audit(runs=names, grader="static")
    audit(runs=names)
    with pytest.raises(CommandError, match="judged by person"):
        audit(questions=str(tmp_path / "q"))
    with pytest.raises(CommandError, match="reason"):
        audit(reveal=True)
