"""Random groups for property tests: mixed outcomes, masked rows, binary or shaped rewards."""

import numpy as np
from hypothesis import strategies as st

FACTORS = st.floats(0.05, 1.0) | st.sampled_from([0.2, 0.4, 0.85, 0.9, 1.0])
BOUNDS = st.none() | st.floats(1.0, 5.0)


@st.composite
def batches(draw, *, shaped=False, groups=st.integers(1, 4)):
    """Return (rewards_BG, factors_BG, passing_BG, valid_BG); each group has a pass and a failure.

    Masked rows hold NaN, and factors are NaN where nobody may read them.
    """
    n, width = draw(groups), draw(st.integers(2, 12))
    rows = [draw(_group(width, shaped=shaped)) for _ in range(n)]
    return tuple(np.array(part) for part in zip(*rows, strict=True))


@st.composite
def _group(draw, width, *, shaped):
    kinds = draw(st.lists(st.sampled_from("pfx"), min_size=width, max_size=width))
    places = draw(st.permutations(range(width)))
    kinds[places[0]], kinds[places[1]] = "p", "f"
    passing = [kind == "p" for kind in kinds]
    valid = [kind != "x" for kind in kinds]
    binary = [float(p) for p in passing]
    rewards = draw(st.lists(st.floats(-2, 2), min_size=width, max_size=width)) if shaped else binary
    rewards = [reward if v else np.nan for reward, v in zip(rewards, valid, strict=True)]
    factors = [draw(FACTORS) if p else np.nan for p in passing]
    return rewards, factors, passing, valid
