"""From outcome advantages and quality factors to training advantages. Pure; numpy, and torch for tokens.

Axes: `_BG` groups x rollouts (one group is a batch of one, short groups are masked), `_B1` one a
group, `_BT` sequences x tokens.
"""
