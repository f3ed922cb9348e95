"""Fixtures of the client's tests."""

import pytest

from tests.training_bridge.client.little_server import TOKEN, LittleServer
from training_bridge.client import GagarClient, shared


@pytest.fixture
def server():
    with LittleServer() as little:
        yield little


@pytest.fixture(autouse=True)
def quick_backoff(monkeypatch):
    """Come back within a tenth of a second, so that a test of ten lost sockets stays short."""
    monkeypatch.setattr(shared, "RETRY_FIRST_S", 0.02)
    monkeypatch.setattr(shared, "RETRY_CEILING_S", 0.1)


@pytest.fixture
def connect(server):
    """Make clients of the little server's run `r`."""

    def make(**options) -> GagarClient:
        return GagarClient(server.url, "r", options.pop("token", TOKEN), **options)

    return make
