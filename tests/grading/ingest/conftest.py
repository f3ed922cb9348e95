import pytest
from rest_framework.test import APIClient

from tests.factories import make_life, make_run, make_task, make_token


def client_with(secret: str) -> APIClient:
    client = APIClient(raise_request_exception=False)
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {secret}")
    return client


class Job:
    """A job as the API meets it: a run, its first life, a token in the header, and short ways to call."""

    def __init__(self, **run_fields):
        self.run = make_run(**run_fields)
        self.life = make_life(run=self.run)
        self.task = make_task(team=self.run.team)
        self.token, self.secret = make_token(run=self.run)
        self.at = f"/api/v1/runs/{self.run.public_id}"
        self.client = client_with(self.secret)
        self.reader = client_with(make_token(run=self.run, purposes=["read"])[1])

    def put(self, path, data, **extra):
        return self.client.put(path, data, format="json", **extra)

    def post(self, path, data, **extra):
        return self.client.post(path, data, format="json", **extra)

    def declare(self, key="g", **fields):
        said = {"life": self.life.n, "task": self.task.key, "step": 1, "group_size": 2, "eligible": True} | fields
        return self.put(f"{self.at}/groups/{key}", said)

    def hand_in(self, *rollouts, life=None):
        return self.post(f"{self.at}/trajectories", {"life": life or self.life.n, "trajectories": list(rollouts)})

    def stream(self, body, **extra):
        """A body of NDJSON as bytes."""
        content_type = extra.pop("content_type", "application/x-ndjson")
        return self.client.generic("POST", f"{self.at}/trajectories?life={self.life.n}", body, content_type, **extra)

    def group(self, key="g"):
        return self.client.get(f"{self.at}/groups/{key}").json()


@pytest.fixture
def job(db, bodies_folder):
    return Job()


@pytest.fixture
def bodies_folder(tmp_path, settings):
    settings.STORAGES = settings.STORAGES | {
        "bodies": {
            "BACKEND": "django.core.files.storage.FileSystemStorage",
            "OPTIONS": {"location": str(tmp_path / "bodies")},
        }
    }
    return tmp_path / "bodies"


def rollout(external_id="a", outcome="passed", **fields):
    return {"group": "g", "external_id": external_id, "outcome": outcome} | fields
