"""The page of exports is an admin's, and its files are those of the command."""

import io
import json

import pyarrow.parquet as pq
import pytest

from tests.factories import make_team, make_user
from tests.grading.export.rooms import correct
from tests.verdicts import held_group

pytestmark = pytest.mark.django_db


@pytest.fixture
def group():
    group = held_group(outcomes="PPPF")
    correct(group, letter="B", precision=2)
    return group


@pytest.fixture
def admin(client, group):
    client.force_login(make_user(role="admin", team=group.run.team))


def test_the_page_counts_and_its_files_hold_the_rows(client, admin, group):
    url = f"/teams/{group.run.team.slug}/export"
    page = client.get(url).content.decode()
    assert "<b>0</b> approved and <b>1</b> corrected" in page
    for kind in ("labels", "preferences"):
        lines = client.get(f"{url}/{kind}.jsonl?run={group.run.public_id}")
        rows = [json.loads(line) for line in b"".join(lines).splitlines()]
        assert len(rows) == 3 and lines["Content-Disposition"].endswith(f'{group.run.public_id}-{kind}.jsonl"')
        table = pq.read_table(io.BytesIO(client.get(f"{url}/{kind}.parquet").getvalue()))
        assert table.to_pylist() == rows
    assert b"".join(client.get(f"{url}/sft.jsonl")) == b""


def test_a_file_that_is_not_made_is_refused_in_words(client, admin, group):
    url = f"/teams/{group.run.team.slug}/export"
    assert client.get(f"{url}/sft.parquet").status_code == 400
    assert client.get(f"{url}/secrets.jsonl").status_code == 400
    assert client.get(f"{url}/labels.jsonl?run=nobody").status_code == 404


@pytest.mark.parametrize("role, same_team, status", [("reviewer", True, 403), ("admin", False, 404)])
def test_nobody_else_gets_a_file(client, group, role, same_team, status):
    client.force_login(make_user(role=role, team=group.run.team if same_team else make_team()))
    url = f"/teams/{group.run.team.slug}/export"
    assert {client.get(u).status_code for u in (url, f"{url}/labels.jsonl", f"{url}/labels.parquet")} == {status}
