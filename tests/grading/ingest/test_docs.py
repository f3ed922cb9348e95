"""The API describes itself, in a schema that validates and a page that needs no relaxed scripts."""

import pytest
import yaml
from django.core.management import call_command
from django.test import Client
from django.urls import get_resolver

from gagar_web import api_urls
from grading.ingest.machine_view import purposes_of
from grading.models.people import PURPOSES

pytestmark = pytest.mark.django_db


@pytest.fixture(scope="module")
def schema(django_db_setup, django_db_blocker):
    with django_db_blocker.unblock():
        answer = Client().get("/api/v1/schema/")
    assert answer.status_code == 200
    return yaml.safe_load(answer.content)


def test_every_call_is_described_with_words_and_answers(schema):
    calls = [call for path in schema["paths"].values() for call in path.values()]
    assert len(calls) >= 20
    for call in calls:
        assert call["description"], call["operationId"]
        assert "401" in call["responses"], call["operationId"]
        assert any(status.startswith("2") for status in call["responses"]), call["operationId"]


def test_the_schema_is_made_without_a_warning():
    call_command("spectacular", "--validate", "--fail-on-warn", "--file", "/dev/null")


def test_streamed_bodies_have_their_shape_in_the_schema(schema):
    post = schema["paths"]["/api/v1/runs/{run}/trajectories"]["post"]
    assert set(post["requestBody"]["content"]) == {"application/json", "application/x-ndjson"}
    fields = schema["components"]["schemas"]["TrajectoryWire"]["properties"]
    assert {"external_id", "outcome", "reward", "patch", "events", "log_base64"} <= set(fields)


def test_the_page_loads_scripts_from_files_only():
    page = Client().get("/api/v1/docs/")
    assert page.status_code == 200
    policy = page["Content-Security-Policy"]
    assert "style-src 'self' 'unsafe-inline'" in policy
    assert "script-src" not in policy and "default-src 'self'" in policy
    assert b"<script>" not in page.content
    other = Client().get("/api/v1/schema/")["Content-Security-Policy"]
    assert "unsafe-inline" not in other


def test_every_address_says_who_may_use_it():
    for pattern in api_urls.urlpatterns:
        view = pattern.callback.view_class
        assert view.access == "public" or set(purposes_of(view)) <= set(PURPOSES), pattern
    assert get_resolver().resolve("/api/v1/nowhere").func.view_class.__name__ == "NoSuchAddress"
