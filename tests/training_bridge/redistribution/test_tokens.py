import pytest

torch = pytest.importorskip("torch", reason="tokens need torch, the extra [train]")

from training_bridge.redistribution.tokens import token_advantages  # noqa: E402 - after the check for torch

MASK = [[0, 1, 1, 0], [0, 0, 0, 0], [1, 0, 1, 1]]
EXPECTED = [[0, 0.5, 0.5, 0], [0, 0, 0, 0], [2, 0, 2, 2]]
MASKS = [torch.float32, torch.float64, torch.bool, torch.int64, torch.uint8]


@pytest.mark.parametrize("mask_dtype", MASKS)
def test_response_tokens_get_the_advantage_of_their_sequence_and_others_nothing(mask_dtype):
    advantages = torch.tensor([0.5, -1.0, 2.0])
    got = token_advantages(advantages, torch.tensor(MASK, dtype=mask_dtype))
    assert got.dtype == advantages.dtype
    assert torch.equal(got, torch.tensor(EXPECTED))


@pytest.mark.parametrize("mask_dtype", MASKS)
def test_every_chunk_of_a_large_mask_is_written(mask_dtype):
    generator = torch.Generator().manual_seed(0)
    advantages = torch.randn(700, generator=generator)
    mask = torch.rand((700, 1_000), generator=generator) < 0.5
    out = torch.full((700, 1_000), torch.nan)
    got = token_advantages(advantages, mask.to(mask_dtype), out=out)
    assert got is out
    assert torch.equal(got, torch.where(mask, advantages[:, None], 0.0))


def test_empty_shapes_come_back_empty():
    assert token_advantages(torch.zeros(0), torch.zeros(0, 5)).shape == (0, 5)
    assert token_advantages(torch.zeros(3), torch.zeros(3, 0, dtype=torch.bool)).shape == (3, 0)


@pytest.mark.parametrize("bad", [torch.nan, torch.inf])
def test_an_advantage_that_is_no_number_is_refused_even_if_no_token_reads_it(bad):
    with pytest.raises(ValueError, match="expected finite numbers"):
        token_advantages(torch.tensor([0.0, bad]), torch.zeros(2, 3))


@pytest.mark.parametrize("shape", [(2, 3), (3,), (3, 3, 1)])
def test_a_mask_of_another_shape_is_refused(shape):
    with pytest.raises(ValueError, match=r"expected \(B,\) and \(B, T\)"):
        token_advantages(torch.zeros(3), torch.zeros(shape))
