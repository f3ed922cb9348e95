"""What training gets for one group, as the review page shows it: of what counts now, or of an unsaved draft."""

from django.db.models import prefetch_related_objects

from grading.grader import gather
from grading.models import RolloutGroup, Trajectory, Verdict
from grading.review import decisions
from grading.review.correction_form import Fields, read_form
from grading.review.drafts import draft_of, stand
from grading.scoring.ranks import Ranking
from grading.scoring.tiers import TIER_NAMES, TIERS
from grading.states import GroupState
from grading.templatetags.figures import fixed, signed
from training_bridge.decided import decision_numbers, factor_numbers, group_numbers, reason_of
from training_bridge.due import REFUSED
from training_bridge.effects import REDISTRIBUTING, Effect, effect_of
from training_bridge.payload import UNGRADED, Numbers
from training_bridge.redistribution import regimes
from training_bridge.redistribution.masks import TINY

REASONS = {
    decisions.DEADLINE: "the deadline passed without a verdict that counts",
    decisions.SHADOW: "the run is in shadow: no verdict counts",
    decisions.PAUSED: "redistribution is paused",
    decisions.GRADER_FAILURE: "the verdict is not valid",
    REFUSED: "the factors could not be used",
    UNGRADED: "no verdict yet",
    decisions.SKIPPED: "skipped: the history says by whom or by which budget",
    regimes.INVERTS_ORDER: "redistributed, a failure would stand above a pass",
    regimes.NOT_FINITE: "redistributed, a number would not be finite",
    "negative_reward": "a negative reward: discounting it would favour the worse",
}


def standing_panel(group: RolloutGroup) -> dict:
    """The numbers of what counts now: the newest decision, else the newest verdict."""
    if group.state == GroupState.COLLECTING:
        return refusal("The group is still collecting its rollouts: its numbers come when it is complete.")
    trajectories = gather.counted(group)
    found = group.decisions.select_related("verdict__rubric").prefetch_related("verdict__candidates__trajectory")
    decision = found.order_by("-version").first()
    if decision is None:
        verdict = decisions.newest_verdict(group)
        prefetch_related_objects([verdict] if verdict else [], "candidates__trajectory")
        failed = {"fallback_reason": decisions.GRADER_FAILURE} if verdict and not verdict.is_valid else {}
        said = {"trajectories": trajectories, **failed}
        numbers = _allowed(group, trajectories, lambda: group_numbers(group, verdict, **said))
        return _panel(group, numbers, trajectories, ranking=_ranking(verdict), reason=numbers.credit.reason)
    decision.group = group
    numbers = _allowed(group, trajectories, lambda: decision_numbers(decision, trajectories))
    reason = reason_of(decision, numbers)
    return _panel(group, numbers, trajectories, ranking=_ranking(decision.verdict), reason=reason)


def draft_panel(group: RolloutGroup, fields: Fields) -> dict:
    """The numbers that saving and approving this form would deliver; an error in words where it cannot be graded.

    A form that edits nothing is no draft: what counts now is shown, as before the first edit.
    """
    posted = read_form(fields)
    seen = group.verdicts.select_related("rubric").filter(pk=posted.verdict).first()
    trajectories = gather.counted(group)
    standing = stand(group, verdict=seen, trajectories=trajectories)
    if standing is None:
        return refusal("There is no verdict to correct yet.", is_draft=True)
    draft = draft_of(standing, posted)
    if not draft.is_edited and not posted.is_unread:
        return standing_panel(group)
    if draft.grades is None or posted.is_unread:  # a citation that is half typed changes no number
        return refusal("; ".join(draft.errors) or "A candidate has no score yet.", is_draft=True)
    rubric = group.rubric or group.run.rubric
    try:
        numbers = factor_numbers(group, draft.factors, rubric=rubric, trajectories=trajectories)
    except ValueError as wrong:
        return refusal(f"The draft has no numbers: {wrong}", is_draft=True)
    reason = numbers.credit.reason
    return _panel(group, numbers, trajectories, ranking=draft.grades.ranking, reason=reason, is_draft=True)


def refusal(words: str, *, is_draft: bool = False) -> dict:
    return {"error": words, "is_draft": is_draft, "rows": []}


def _allowed(group: RolloutGroup, trajectories: list[Trajectory], build) -> Numbers:
    """As delivery does: factors that cannot be used mean outcome advantages."""
    try:
        return build()
    except ValueError:
        return group_numbers(group, None, trajectories=trajectories, fallback_reason=REFUSED)


def _ranking(verdict: Verdict | None) -> Ranking:
    return {tier: verdict.ranking.get(name, ()) for tier, name in TIER_NAMES.items()} if verdict else {}


def _panel(
    group: RolloutGroup,
    numbers: Numbers,
    trajectories: list[Trajectory],
    *,
    ranking: Ranking,
    reason: str | None,
    is_draft: bool = False,
) -> dict:
    effect, credit = effect_of(numbers), numbers.credit
    is_scaled = credit.regime in REDISTRIBUTING
    cap = (group.rubric or group.run.rubric).rubric.lambda_max if is_scaled else None
    rows = _rows(numbers, effect, trajectories, ranking)
    shown = [abs(value) for row in rows if row["passed"] for value in (row["before"], row["after"])]
    return {
        "error": "",
        "is_draft": is_draft,
        "regime": credit.regime,
        "lam": credit.lambda_ if is_scaled else None,
        "wanted": effect.wanted,
        "cap": None if cap is None else float(cap),
        "capped": credit.capped,
        "words": _words(group, numbers, effect, cap, reason),
        "rows": rows,
        "top": max(shown, default=0.0),
        "sums": _sums(effect),
        "credit_kept": credit.credit_kept,
        "penalty_kept": credit.penalty_kept,
        "sums_kept": effect.sums_kept,
        "sums_words": _sums_words(effect),
    }


def _rows(numbers: Numbers, effect: Effect, trajectories: list[Trajectory], ranking: Ranking) -> list[dict]:
    """In ranking order, then the other passes, the failures, the masked ones, each by letter."""
    letters = {t.external_id: t.letter for t in trajectories}
    place = {id: n for n, id in enumerate(id for tier in TIERS for tied in ranking.get(tier, ()) for id in tied)}
    rows = []
    for i, row in enumerate(numbers.rows):
        before, after = float(effect.before_G[i]), float(effect.after_G[i])
        passed, valid = bool(effect.passing_G[i]), bool(effect.valid_G[i])
        order = (not passed, not valid, place.get(row.trajectory, len(place)), letters[row.trajectory])
        rows.append((order, {
            "letter": letters[row.trajectory], "outcome": row.outcome, "integrity": row.integrity, "passed": passed,
            "reward": row.reward, "factor": row.factor, "before": before, "after": after, "change": after - before,
        }))  # fmt: skip
    return [row for _, row in sorted(rows, key=lambda pair: pair[0])]


def _words(group: RolloutGroup, numbers: Numbers, effect: Effect, cap, reason: str | None) -> str:
    credit = numbers.credit
    if credit.regime == regimes.BOUNDED:
        words = f"needed {fixed(effect.wanted)}"
    elif credit.regime in REDISTRIBUTING:
        words = "no cap" if cap is None else f"{fixed(float(cap) - credit.lambda_, 3)} below the cap"
        words += "; a pass lay below the mean" if credit.regime == regimes.CLIPPED else ""
    elif credit.regime == regimes.BASELINE:
        words = f"method {(group.method or group.run.method).replace('_', ' ')}"
    elif credit.regime == regimes.INELIGIBLE:
        words = "passed through with the rewards it came with"
    else:
        words = REASONS.get(reason or "", (reason or "").replace("_", " "))
    return words + ("; a failure stands above a pass by its own reward" if credit.inverted_by_reward else "")


def _sums(effect: Effect) -> dict[str, float]:
    passing_G, failing_G = effect.passing_G, effect.failing_G
    return {
        "passes_before": float(effect.before_G[passing_G].sum()),
        "passes_after": float(effect.after_G[passing_G].sum()),
        "failures_before": float(effect.before_G[failing_G].sum()),
        "failures_after": float(effect.after_G[failing_G].sum()),
    }


def _sums_words(effect: Effect) -> str:
    if effect.sums_kept:
        return "sums kept, failures untouched"
    sums = _sums(effect)
    change = sums["passes_after"] - sums["passes_before"]
    if abs(change) > TINY:
        return f"sums not kept: {signed(change)} on passes"
    return "failures moved among themselves"
