"""Torch code of ours gives the numbers of a CPU on a CUDA device, to float32."""

import copy

import pytest

torch = pytest.importorskip("torch", reason="needs torch, the extra [train]")
if not torch.cuda.is_available():
    pytest.skip("needs a CUDA device, and there is none here", allow_module_level=True)

from training_bridge.redistribution.tokens import token_advantages  # noqa: E402
from training_bridge.tiny_job import catalog, trainer  # noqa: E402
from training_bridge.tiny_job.language import Language  # noqa: E402
from training_bridge.tiny_job.policy import Policy  # noqa: E402
from training_bridge.tiny_job.rollout import roll_out  # noqa: E402


@pytest.mark.parametrize("mask_dtype", [torch.float32, torch.bool, torch.int64])
def test_tokens_are_the_same_bits(mask_dtype):
    generator = torch.Generator().manual_seed(0)
    advantages_B = torch.randn(300, generator=generator)
    mask_BT = (torch.rand((300, 1_000), generator=generator) < 0.5).to(mask_dtype)
    there_BT = token_advantages(advantages_B.cuda(), mask_BT.cuda())
    assert there_BT.is_cuda and torch.equal(there_BT.cpu(), token_advantages(advantages_B, mask_BT))


def test_a_step_of_the_tiny_job_moves_the_weights_as_on_a_cpu(runner):
    tasks = catalog.load()
    torch.manual_seed(0)
    here = Policy(Language.of(tasks))
    names = [f"r{place}" for place in range(len(tasks))]
    rollouts = roll_out(here, list(tasks.values()), names, runner, generator=torch.Generator().manual_seed(1))
    rows = [trainer.Row(rollout, 0.5 if place % 2 else -0.5) for place, rollout in enumerate(rollouts)]
    there = copy.deepcopy(here).cuda()
    losses = [trainer.train(p, torch.optim.SGD(p.parameters(), lr=0.1), rows) for p in (here, there)]
    assert losses[1] == pytest.approx(losses[0], abs=1e-5)
    for mine, theirs in zip(here.parameters(), there.parameters(), strict=True):
        torch.testing.assert_close(theirs.cpu(), mine, atol=1e-5, rtol=1e-4)
