"""The image, built for real, and its roles on real services: a job gets its row. `make test-image` runs this file.

The last test stops the containers, so they run in the order in which they stand.
"""

import json
import time

import httpx
import pytest

from tests.containers.written import roles
from tests.factories import PATCH
from tests.real_processes import Browser, Fields
from training_bridge.client import GagarClient

pytestmark = pytest.mark.timeout(3600)
NAMES = [name for name in roles() if name != "setup"]
STOPS_S = 90  # on a busy machine; else seconds
LOOK = """
import glob, json, os
def refused(path):
    try: open(path, 'w').close()
    except OSError as e: return e.strerror
status = dict(line.split(':', 1) for line in open('/proc/1/status').read().splitlines())
print(json.dumps({
    'uids': status['Uid'].split(), 'rights': int(status['CapEff'], 16), 'new': status['NoNewPrivs'].strip(),
    'root': refused('/x'), 'code': refused('/srv/gagar/x'), 'venv': refused('/opt/gagar/x'),
    'tmp': refused('/tmp/x'), 'data': refused('/var/lib/gagar/x')}))
"""


def test_the_image_holds_the_application_and_nothing_else(engine, image):
    code = (
        "import os; print(sorted(n for n in os.listdir('.') if n != '__pycache__'), "
        "[n for n in os.listdir('gagar_web') if n[0] == '.'])"
    )
    packages = "from importlib.metadata import distributions as d; print(sorted(x.name for x in d()))"
    said = engine.containers.run(image.id, ["python", "-c", code], network_mode="none", remove=True).decode()
    ours = ["gagar_web", "grading", "manage.py", "templates", "training_bridge"]
    assert said.strip() == f"{ours} []"
    said = engine.containers.run(image.id, ["python", "-c", packages], network_mode="none", remove=True).decode()
    assert "django-storages" in said and "boto3" in said
    assert not [name for name in ("pytest", "playwright", "ruff", "'pip'", "torch") if name in said]
    assert image.labels["org.opencontainers.image.version"] == "test"
    history = json.dumps(image.history()) + json.dumps(image.attrs["Config"])
    assert "decoy" not in history and "PIP_" not in history


def test_all_roles_become_healthy_and_the_site_says_so(site):
    answer = httpx.get(f"{site.url}/healthz", headers={"Host": "any.name"})
    assert (answer.status_code, answer.json()) == (200, {"database": True, "migrations": True})
    again = site.run("setup")  # `compose up` after an upgrade
    assert again.wait(timeout=300)["StatusCode"] == 0
    assert b"changepassword" in again.logs()


@pytest.mark.parametrize("name", NAMES)
def test_a_role_is_not_root_and_its_root_filesystem_is_read_only(site, name):
    seen = json.loads(site.inside(name, LOOK))
    assert seen["uids"] == ["10001"] * 4 and seen["rights"] == 0 and seen["new"] == "1"
    read_only = "Read-only file system"
    assert (seen["root"], seen["code"], seen["venv"]) == (read_only,) * 3
    assert (seen["tmp"], seen["data"]) == (None, None)


def test_the_programs_graders_need_are_there(site):
    code = "import subprocess as s; print(s.run(['git', '--version']).returncode, s.run(['ssh', '-V']).returncode)"
    assert site.inside("grader", code).endswith("0 0")
    # where a container may not make namespaces, checks are off and a reason is said; nothing is run outside a sandbox
    code = "from grading.grader.sandbox import why_no_sandbox as w; print(w() or 'on')"
    print(f"\ntargeted checks in the grader's container: {site.inside('grader', code)}")


def test_a_job_declares_a_group_submits_rollouts_and_gets_its_row(site):
    browser = Browser(site.url)
    browser.sign_in("admin", site.setup.logs().decode().split("with the password ")[1].split()[0])
    assert httpx.get(site.url + _stylesheet(browser.page("/runs"))).status_code == 200
    form = Fields("panel-body stack", browser.page("/new-run")).values
    made = browser.post("/new-run", form | {"policy": "auto", "public_id": "boxed", "name": "In containers"})
    token = made.text.split('<code class="token">')[1].split("<")[0]
    with GagarClient(site.url, "boxed", token) as gagar:
        gagar.task("t-1", statement="Make answer() return 42.")
        group = gagar.declare("0/t-1", task="t-1", step=0, group_size=4)
        for number in range(4):
            passed = number < 2
            patch = PATCH if number else PATCH.replace(b"return 42", b"return 42  # the answer")
            group.submit(f"r{number}", outcome="passed" if passed else "failed", patch=patch, events=[])
        batch = gagar.freeze(0, [group], within_s=60)
        (row,) = batch.sets
        gagar.applied(batch)
    assert row.version >= 1, (row, gagar.problems, site.said())
    advantages = list(row.advantage.values())
    assert len(advantages) == 4 and abs(sum(advantages)) < 1e-6 and min(advantages) < 0 < max(advantages)


def _stylesheet(page: str) -> str:
    return page.split('rel="stylesheet" href="')[1].split('"', maxsplit=1)[0]


@pytest.mark.parametrize("name", NAMES)
def test_a_role_told_to_stop_ends_within_seconds(site, name):
    container = site.running[name]
    begun = time.monotonic()
    container.kill("SIGTERM")
    status = container.wait(timeout=STOPS_S)["StatusCode"]
    print(f"\n{name} ended with {status} after {time.monotonic() - begun:.1f} s")
    assert status in (0, 143), container.logs().decode()  # uvicorn ends by the signal it was sent
    said = container.logs().decode()
    assert "Traceback" not in said, said
