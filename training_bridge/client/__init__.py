"""What a GPU job imports: `with GagarClient(url, run, token) as gagar:`. No Django, no server needed."""

from training_bridge.client.asynchronous import AsyncGagarClient
from training_bridge.client.errors import GagarError
from training_bridge.client.gagar import GagarClient, GroupHandle
from training_bridge.client.sets import AdvantageSet, FrozenBatch
from training_bridge.protocol.messages import Estimator

__all__ = ["AdvantageSet", "AsyncGagarClient", "Estimator", "FrozenBatch", "GagarClient", "GagarError", "GroupHandle"]
