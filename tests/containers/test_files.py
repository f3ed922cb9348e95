"""What is written about containers agrees with the code. The image itself: `make test-image`."""

import json
import re
import tomllib

import pytest
from celery.bin.beat import beat
from celery.bin.worker import worker
from click import Context
from django.core.management import get_commands
from docker.utils.build import exclude_paths
from packaging.requirements import Requirement
from packaging.version import Version

from tests.containers import written
from tests.containers.written import ROOT, filled, instructions, last, roles, variables, web_command

README = ROOT / "README.md"
NOT_OURS = {"FORWARDED_ALLOW_IPS"}  # uvicorn reads it
DECOYS = (
    ".env", ".git/config", "var/secret_key", "id_rsa", ".venv/bin/python", "tests/x.py", "gagar_web/.env", "db.sqlite3",
    "grading/__pycache__/x.pyc", "training_bridge/x.pyc", "requirements.lock", "build/image/base.tar", "notes/key.pem",
)  # fmt: skip


def pinned(name: str) -> dict[str, str]:
    found = re.findall(r"^([\w.-]+)==(\S+)", (ROOT / name).read_text(), flags=re.M)
    return {package.lower().replace("_", "-"): version for package, version in found}


def test_the_image_has_the_versions_that_are_tested_and_no_tool_of_ours():
    tested, image = pinned("requirements.lock"), pinned("requirements-image.lock")
    differing = {
        name: (tested[name], image[name]) for name in tested.keys() & image.keys() if tested[name] != image[name]
    }
    assert not differing, f"differing versions (make lock): {differing}"
    assert not {"pytest", "playwright", "ruff", "hypothesis"} & image.keys()


def test_the_image_lock_holds_what_the_server_the_graders_and_s3_need():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    needed = [*project["dependencies"], *extras["web"], *extras["grader"], *extras["s3"]]
    image = pinned("requirements-image.lock")
    for requirement in map(Requirement, needed):
        if requirement.name != "gagar":
            assert Version(image[requirement.name]) in requirement.specifier, requirement


def test_the_image_is_not_root_and_its_programs_get_the_signals():
    assert [words for name, words in instructions() if name == "FROM"] == ["${BASE} AS build", "${BASE}"]
    user, group = map(int, last("USER").split(":"))
    assert user >= 1000 and group >= 1000
    assert web_command()[0] == "uvicorn"
    check = json.loads(last("HEALTHCHECK").partition("CMD ")[2])
    assert (ROOT / check[-1]).is_file()
    assert not any(name == "ADD" for name, _ in instructions())
    said = [words for name, words in instructions() if name in ("ARG", "ENV", "LABEL")]
    assert not re.search(r"(?i)passw|secret|token|_key\b", " ".join(said))


def test_only_what_the_image_holds_is_sent_to_the_builder(tmp_path):
    wanted = {"Dockerfile", ".dockerignore", "requirements-image.lock", "wheels/a.whl", "manage.py"}
    wanted |= {"gagar_web/static/gagar/x.css", "grading/a/b.py", "templates/base.html", "training_bridge/x.toml"}
    for name in (*wanted, *DECOYS):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("secret")
    patterns = (ROOT / ".dockerignore").read_text().splitlines()
    patterns = [line for line in patterns if line and not line.startswith("#")]
    sent = exclude_paths(str(tmp_path), patterns, "Dockerfile")
    assert {name for name in sent if (tmp_path / name).is_file()} - {".dockerignore"} == wanted - {".dockerignore"}


def test_each_role_is_started_with_a_command_that_exists():
    for name, role in roles().items():
        command = [filled(word, {}) for word in role.get("command", web_command())]
        match command:
            case ["python", "manage.py", verb]:
                assert verb in get_commands(), name
            case ["celery", "-A", "gagar_web", "worker", *options]:
                worker.make_parser(Context(worker)).parse_args(options)
            case ["celery", "-A", "gagar_web", "beat", *options]:
                beat.make_parser(Context(beat)).parse_args(options)
            case ["uvicorn", application, *options]:
                from uvicorn.main import main

                assert application == "gagar_web.asgi:application"
                main.make_context("uvicorn", [application, *options])
            case other:
                raise AssertionError(f"{name} is started with {other}")


def test_each_role_gets_variables_that_settings_read():
    read = set(re.findall(r'env_\w+\(\s*"([A-Z_]+)"', (ROOT / "gagar_web/settings.py").read_text())) | NOT_OURS
    for name, role in roles().items():
        assert not role["environment"].keys() - read, name


def test_what_a_person_may_set_is_in_the_readme_and_secrets_have_no_default():
    asked = variables((ROOT / "compose.yaml").read_text())
    assert not [name for name in asked if f"`{name}" not in README.read_text() and f"{name}=" not in README.read_text()]
    secrets = {name for name in asked if re.search("PASSWORD|SECRET", name)}
    assert secrets and not any(asked[name] for name in secrets)


def test_each_role_waits_for_the_tables_and_for_services_that_answer():
    services = written.compose()["services"]
    for name, role in roles().items():
        for other, when in role["depends_on"].items():
            if when["condition"] == "service_healthy":
                assert "test" in services[other]["healthcheck"], other
        if name != "setup":
            assert role["depends_on"]["setup"] == {"condition": "service_completed_successfully"}, name
    assert roles()["setup"]["restart"] == "no"


@pytest.mark.parametrize("name", roles())
def test_no_role_can_write_to_its_root_or_gain_rights(name):
    role = roles()[name]
    assert role["read_only"] and role["cap_drop"] == ["ALL"] and role["init"]
    assert role["security_opt"] == ["no-new-privileges:true"]
    assert "ports" not in role or name == "web"
    # the web answers on its port, the others must leave a sign of life
    assert ("GAGAR_HEARTBEAT_FILE" in role["environment"]) == (name not in ("web", "setup"))
