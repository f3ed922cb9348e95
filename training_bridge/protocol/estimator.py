"""What a trainer may do with our numbers: nothing that changes them. Pure."""

from training_bridge.protocol.messages import CloseCode, Estimator, ProtocolError


def check_estimator(estimator: Estimator) -> None:
    """Refuse a trainer that would change the numbers.

    Args:
        estimator: as the resume names it.
    Raises:
        ProtocolError: `ESTIMATOR`, naming the field: a division by the standard deviation or by anything with an eps,
            clipping, leave-one-out, or no centring in reward space (equivalent rewards are advantages only after
            mean-centring).
    """
    centred = estimator.baseline == "mean" or (estimator.space == "advantage" and estimator.baseline == "none")
    checks = (
        ("space", estimator.space, "advantage or reward", estimator.space in ("advantage", "reward")),
        ("std", estimator.std, "none", estimator.std == "none"),
        ("eps", estimator.eps, "null: nothing is divided", not estimator.eps),
        ("clip", estimator.clip, "null", estimator.clip is None),
        ("baseline", estimator.baseline, "mean (or none, in advantage space)", centred),
    )
    for field, got, expected, fine in checks:
        if not fine:
            raise ProtocolError(f"estimator.{field}", got=got, expected=expected, code=CloseCode.ESTIMATOR)


def check_cap(estimator: Estimator, cap: float | None) -> None:
    """Refuse a trainer that counts on another bound of lambda than the run's.

    Args:
        estimator: as the resume names it; its cap None is content with any.
        cap: the run's; None for no bound.
    Raises:
        ProtocolError: `ESTIMATOR`.
    """
    if estimator.cap is not None and estimator.cap != cap:
        expected = "null: this run has no bound" if cap is None else f"{cap:g}, as this run has it"
        raise ProtocolError("estimator.cap", got=estimator.cap, expected=expected, code=CloseCode.ESTIMATOR)
