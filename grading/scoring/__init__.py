"""From scores and flags to tiers, ranks and factors; from raw rollouts to effective outcomes. Pure."""
