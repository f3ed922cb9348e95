"""Fixtures: the client's little server, and a decider that is connected to it."""

import pytest

from tests.training_bridge.client.little_server import TOKEN, LittleServer
from training_bridge.adapters.deciding import Decider
from training_bridge.client import GagarClient


@pytest.fixture
def server():
    with LittleServer() as little:
        yield little


@pytest.fixture
def connect(server):
    """What an adapter calls to get its client; ended with the test."""
    with GagarClient(server.url, "r", TOKEN) as client:
        yield lambda: client


@pytest.fixture
def decider(connect):
    return Decider(connect, within_s=20.0)
