"""One readable file a trainer: how its groups become ours, how our numbers enter its loss, and a probe that looks."""
