"""From one advantage a sequence to one a token. The only module here that needs torch."""

import torch

# Mask rows converted at a time on a CPU: the second pass over them then finds them in the cache.
CHUNK_BYTES = 1 << 18


def token_advantages(
    advantages_B: torch.Tensor, response_mask_BT: torch.Tensor, out: torch.Tensor | None = None
) -> torch.Tensor:
    """Give every model-generated response token the advantage of its sequence, and 0 to all others.

    Args:
        advantages_B: (B,) float, reward units.
        response_mask_BT: (B, T); 1 on tokens that the model wrote, 0 on prompt, tool and padding
            tokens. A mask of the dtype of the advantages is read once, at the speed of a copy.
        out: (B, T) of the dtype of the advantages, to write to; a fresh tensor costs page faults.
    Returns:
        (B, T), the dtype of the advantages. No token in the mask: 0 throughout.
    Raises:
        ValueError: shapes differ, or an advantage is NaN or infinite.
    """
    if advantages_B.ndim != 1 or response_mask_BT.ndim != 2 or len(advantages_B) != len(response_mask_BT):
        got = f"{tuple(advantages_B.shape)} and {tuple(response_mask_BT.shape)}"
        raise ValueError(f"advantages and mask have shapes {got}, expected (B,) and (B, T)")
    if not torch.isfinite(advantages_B).all():
        raise ValueError(f"advantages are {advantages_B}, expected finite numbers")
    if out is None:
        out = torch.empty(response_mask_BT.shape, dtype=advantages_B.dtype, device=advantages_B.device)
    advantages_B1 = advantages_B[:, None]
    if response_mask_BT.dtype == out.dtype or out.device.type != "cpu":
        return torch.mul(advantages_B1, response_mask_BT, out=out)
    rows = max(1, CHUNK_BYTES // max(1, out.shape[1] * out.element_size()))
    for out_bT, mask_bT, advantages_b1 in zip(
        out.split(rows), response_mask_BT.split(rows), advantages_B1.split(rows), strict=True
    ):
        out_bT.copy_(mask_bT).mul_(advantages_b1)
    return out
