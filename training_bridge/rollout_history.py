"""The whole way of one rollout, from its ingest to the optimiser step that used it: who, when, and the numbers then."""

import json
from collections.abc import Iterator

from grading.models import Decision, Trajectory, Verdict
from grading.states import Purpose
from training_bridge.intake import rolled_back
from training_bridge.models import Delivery, Receipt
from training_bridge.monitor.group_ledger import versions

STAGES = ("declared", "received", "complete", "inspected", "grading", "verdict", "correction", "finding", "decision",
          "delivery", "receipt")  # fmt: skip
COUNTED = ("turns", "tokens", "response_tokens")
SHOWN = (Purpose.TRAINING, Purpose.EXTRA)  # audits and anchors are of another question


def history_of(rollout: Trajectory, *, without_verdicts: bool = False) -> list[dict]:
    """Every entry in the order in which it happened: stage, at, by, words, numbers, why, link.

    `numbers` maps a name to a value as it was then; `link` is (kind, number) of the row behind it, or None.
    `without_verdicts`: for a reader who must not see them yet.
    """
    parts = [_ingest(rollout), _findings(rollout), _decisions(rollout), _deliveries(rollout)]
    if not without_verdicts:
        parts += [_gradings(rollout), _verdicts(rollout)]
    found = [entry for part in parts for entry in part]
    return sorted(found, key=lambda entry: (entry["at"], STAGES.index(entry["stage"])))


def _entry(stage: str, at, by: str, words: str, *, why="", link=None, **numbers) -> dict:
    known = {name: value for name, value in numbers.items() if value not in (None, "")}
    return {"stage": stage, "at": at, "by": by, "words": words, "numbers": known, "why": why, "link": link}


def _ingest(rollout: Trajectory) -> Iterator[dict]:
    group = rollout.group
    life = f"life:{group.life.n}"
    yield _entry("declared", group.created_at, life, f"group {group.key} declared", step=group.step,
                 size=group.group_size, policy_version=group.policy_version)  # fmt: skip
    counts = {name: rollout.counts.get(name) for name in COUNTED}
    marks = [word for word, is_so in (("truncated", rollout.is_truncated), ("late", rollout.is_late)) if is_so]
    yield _entry(
        "received", rollout.created_at, life, ", ".join([rollout.outcome.replace("_", "-"), *marks]),
        why=rollout.problem, reward=rollout.reward, patch_bytes=rollout.patch_bytes, events=rollout.event_count,
        **counts,
    )  # fmt: skip
    if group.completed_at:
        pinned = f"policy {group.policy}, method {group.method}, rubric {group.rubric}"
        valid = group.trajectories.counted().exclude(outcome="infra_invalid").count()
        yield _entry("complete", group.completed_at, "server", f"group complete: {pinned}", valid=valid)
    if group.inspected_at:
        hints = "; ".join(f"{signal.detector}: {signal.words}" for signal in rollout.signals.order_by("pk"))
        yield _entry("inspected", group.inspected_at, "detectors", hints or "no hint")


def _gradings(rollout: Trajectory) -> Iterator[dict]:
    for grading in rollout.group.gradings.exclude(verdict__purpose__in=set(Purpose) - set(SHOWN)).order_by("pk"):
        by = grading.grader + (f", asked by {grading.asked_by}" if grading.asked_by else "")
        yield _entry("grading", grading.started_at, by, f"attempt {grading.attempt}: {grading.state}",
                     link=("grading", grading.pk), seconds=grading.duration_s, cost_usd=grading.cost_usd)  # fmt: skip


def _verdicts(rollout: Trajectory) -> Iterator[dict]:
    rows = rollout.group.verdicts.filter(purpose__in=SHOWN).select_related("author").order_by("pk")
    placed = {row.verdict_id: row for row in rollout.placements.filter(verdict__group=rollout.group)}
    for verdict in rows:
        row = placed.get(verdict.pk)
        stage = "correction" if verdict.parent_id else "verdict"
        told = {"why": verdict.reason, "link": ("verdict", verdict.pk)}
        if row is None:
            yield _entry(stage, verdict.created_at, verdict.said_by, _unplaced(verdict), **told)
            continue
        flags = f": {', '.join(flag.replace('_', ' ') for flag in row.flags)}" if row.flags else ""
        numbers = {"W": float(row.weighted_score), "tier": row.tier, "rank": row.rank, "factor": row.factor}
        yield _entry(stage, verdict.created_at, verdict.said_by, f"T{row.tier}{flags}", **told, **row.scores, **numbers)


def _unplaced(verdict: Verdict) -> str:
    return "not ranked: it was no passing candidate" if verdict.is_valid else "the verdict is not valid"


def _findings(rollout: Trajectory) -> Iterator[dict]:
    for finding in rollout.findings.order_by("pk"):
        words = f"confirmed {finding.kind}: it counts as failed" if finding.kind else "finding withdrawn"
        yield _entry("finding", finding.at, finding.by, words, why=finding.reason)


def _decisions(rollout: Trajectory) -> Iterator[dict]:
    decision: Decision
    for decision in rollout.group.decisions.order_by("version"):
        link = ("verdict", decision.verdict_id) if decision.verdict_id else None
        words = f"version {decision.version}: {decision.kind}"
        yield _entry("decision", decision.at, decision.by, words, why=decision.reason.replace("_", " "), link=link,
                     version=decision.version)  # fmt: skip


def _deliveries(rollout: Trajectory) -> Iterator[dict]:
    """Each row that carried the rollout, and each receipt for it; of version 0 the job's own numbers."""
    stood = versions(rollout.group)
    for shown in stood["rows"]:
        yield _delivery(rollout, shown["delivery"])
        for receipt in shown["receipts"]:
            yield _receipt(receipt)
    for receipt in stood["own"]:
        yield _receipt(receipt, undone=rolled_back(stood["own"]) or stood["is_rolled_back"])


def _delivery(rollout: Trajectory, row: Delivery) -> dict:
    said = json.loads(row.text)
    mine = next((one for one in said["rows"] if one["trajectory"] == rollout.external_id), None)
    where = f"row {row.seq} of epoch {row.epoch}, version {row.version}: {row.regime}, {row.place.replace('_', ' ')}"
    if mine is None:
        return _entry("delivery", row.created_at, "bridge", f"{where}; it names no rollouts", why=row.reason)
    return _entry(
        "delivery", row.created_at, "bridge", where, why=row.reason.replace("_", " "), seq=row.seq, epoch=row.epoch,
        version=row.version, reward=mine.get("reward"), outcome_advantage=outcome_advantage(said["rows"], mine),
        factor=mine.get("factor"), **{"lambda": said.get("lambda")}, advantage=mine["advantage"],
    )  # fmt: skip


def outcome_advantage(rows: list[dict], mine: dict) -> float | None:
    """What the same rewards give undivided: A = R - mean(R) over the valid rows. None for a masked rollout."""
    rewards = [row["reward"] for row in rows if row.get("reward") is not None]
    return None if mine.get("reward") is None else mine["reward"] - sum(rewards) / len(rewards)


def _receipt(receipt: Receipt, *, undone: bool = False) -> dict:
    what = f"version {receipt.version}" if receipt.version else "the job's own outcome advantages"
    words = f"{what}: {receipt.status.replace('_', ' ')} at step {receipt.step}"
    gone = "a later life went back to a checkpoint of before it" if undone and receipt.status == "applied" else ""
    return _entry("receipt", receipt.at, "job", words, why=gone, version=receipt.version, step=receipt.step)
