"""The signs of a run that goes wrong: what each measures, in which unit, and where it is bad by default. Core."""

import math
from dataclasses import dataclass

LEVEL, SIZE, RISE, RATIO, FALL, MIX, NOW = "level", "size", "rise", "ratio", "fall", "mix", "now"
SHARE, POINTS, TIMES, REWARD = "share", "points", "times", "reward"
COUNT, MINUTES, TAU_B = "count", "minutes", "tau_b"


@dataclass(frozen=True)
class Rule:
    """How a sign is judged: beyond `threshold`, over `window` steps, of at least `least` things counted."""

    threshold: float
    window: int = 10
    least: int = 8
    is_on: bool = True


@dataclass(frozen=True)
class Sign:
    """One way to go wrong.

    `kind` says how a window of steps becomes a value (`alert_values.measure`); NOW: it is read at every look instead.
    `parts` are keys of a step's sums, numerator and denominator, or the shares of a mix; `counted` is what `least`
    counts, in words and by its key. A start above `most_start` counts as that much.
    """

    key: str
    title: str
    kind: str
    unit: str
    rule: Rule
    counted: tuple[str, str]
    why: str
    parts: tuple[str, ...] = ()
    panel: str = ""  # of the monitor, where it is marked
    band: float = 0.2  # how far back inside it must come to be over, as a share of the threshold
    is_low_bad: bool = False
    is_danger: bool = False
    most_start: float = math.inf
    regime: str = ""  # the groups that made it, in the explorer
    is_about_anchors: bool = False  # groups that were graded again, of any step

    @property
    def is_read_by_step(self) -> bool:
        return self.kind != NOW

    @property
    def compares_with_start(self) -> bool:
        return self.kind in (RISE, RATIO, MIX)


TIERS = ("tier1", "tier2", "tier3")
_SIGNS = [
    Sign(
        "balance", "Token-weighted balance off zero", SIZE, REWARD, Rule(0.06), ("groups", "trained"),
        "Redistribution over equally long rollouts gives 0. Eq. 1 alone gives -0.10 at pass rate 0.5 and mean "
        "factor 0.6; failures 1.2 times as long as passes give -0.04.",
        parts=("weighted", "length"), panel="balance", is_danger=True,
    ),
    Sign(
        "credit_kept", "Credit kept is low", LEVEL, SHARE, Rule(0.75), ("groups", "trained"),
        "The cap takes from the passes what it does not give back. It binds in about half of all groups; 0.75 "
        "over ten steps means that most passes stand in T3, or that nothing is given back.",
        parts=("paid", "due"), panel="kept", regime="bounded", band=0.06, is_low_bad=True,
    ),
    Sign(
        "invalid_share", "Invalid share rises", RISE, POINTS, Rule(0.05, least=64), ("rollouts", "rollouts"),
        "Against the run's first steps, of which at most 5 % count as normal: more is the fault of sandboxes, "
        "not of the policy.",
        parts=("invalid", "rollouts"), most_start=0.05, is_danger=True,
    ),
    Sign(
        "truncated_share", "Truncated share rises", RISE, POINTS, Rule(0.10, least=64), ("rollouts", "rollouts"),
        "Against the run's first steps, of which at most 10 % count as normal. In the paper's baseline more "
        "and more rollouts were cut at the length limit as the pass rate fell.",
        parts=("truncated", "rollouts"), panel="length", most_start=0.1,
    ),
    Sign(
        "entropy_rise", "Entropy rises", RATIO, TIMES, Rule(1.75, least=5), ("steps", "entropy_n"),
        "Against the run's first steps. The paper saw 2.5 times in 30 steps with downweighting alone, and 1.4 "
        "times with redistribution.",
        parts=("entropy", "entropy_n"), panel="entropy", band=0.1, is_danger=True,
    ),
    Sign(
        "length_growth", "Responses grow", RATIO, TIMES, Rule(1.8, least=5), ("steps", "response_n"),
        "Tokens of the response against the run's first steps. The paper saw 2.4 times with downweighting "
        "alone, and 1.5 times with redistribution.",
        parts=("response", "response_n"), panel="length", band=0.1,
    ),
    Sign(
        "pass_rate_fall", "Pass rate fell from its best", FALL, POINTS, Rule(0.08, 5, 200), ("rollouts", "n_valid"),
        "The paper's baseline was stopped after a fall of 8 points in 8 steps. Both sides are means over the "
        "window, so one lucky step is no best.",
        parts=("n_passes", "n_valid"), panel="pass_rate", is_danger=True,
    ),
    Sign(
        "fallback_share", "Fallback share is high", LEVEL, SHARE, Rule(0.25), ("groups", "trained"),
        "A quarter of the groups without a grade: a grader or a deadline does not keep up. Pause and shadow "
        "are left out, there outcome advantages are what was asked for.",
        parts=("fallback", "trained"), panel="regimes", regime="fallback",
    ),
    Sign(
        "cap_share", "The cap on lambda binds often", LEVEL, SHARE, Rule(0.75), ("groups", "redistributed"),
        "It binds wherever the mean factor of the passes is below 2/3: about half of the groups under the "
        "first rubric, so half is no sign.",
        parts=("bounded", "redistributed"), panel="regimes", regime="bounded", band=0.1,
    ),
    Sign(
        "grader_drift", "The grader's tiers drift", MIX, POINTS, Rule(0.25, least=40), ("ranked passes", "ranked"),
        "How far the shares of the tiers, or of tied passes, stand from those of the run's first steps. A "
        "better policy moves them too: see Calibration > Drift before the grader is blamed.",
        parts=(*TIERS, "tied"), panel="tiers",
    ),
    Sign(
        "anchor_order", "The grader orders anchors anew", NOW, TAU_B, Rule(0.6, least=5), ("anchors", ""),
        "The newest round of anchors against the one before it, of this run or by the same grader: the upper end of "
        "the 95 % interval of tau-b. The groups are the same, so it is the grader and not the policy.",
        is_low_bad=True, is_about_anchors=True,
    ),
    Sign(
        "anchor_accuracy", "The grader agrees less with people", NOW, POINTS, Rule(0, least=5), ("anchors", ""),
        "On anchors that people ordered: how many points of agreement are lost since the round before, at least "
        "(95 %). Pause the run until you know, or change the grader back.",
        is_danger=True, is_about_anchors=True,
    ),
    Sign(
        "late", "Deliveries come late", NOW, SHARE, Rule(0.10), ("receipts", ""),
        "Of the last 10 steps: the job had trained without them. Shorter deadlines, or a job that holds "
        "groups longer, would help. What a pause sent is left out: the job waits for none of it.",
    ),
    Sign(
        "waiting", "Deliveries wait", NOW, COUNT, Rule(0, least=1), ("rows", ""),
        "The job is connected and takes none of the stored rows for 30 s: its credit window may be full, or "
        "it hangs.",
    ),
    Sign(
        "silent", "The job is silent", NOW, MINUTES, Rule(2, least=1), ("minutes", ""),
        "It ended without a word, it hangs, or it cannot reach this server. While its socket is open 28 more "
        "minutes are normal: a long step says nothing.",
        is_danger=True,
    ),
    Sign(
        "not_finite", "A metric is no number", NOW, COUNT, Rule(0, least=1), ("metrics", ""),
        "NaN or infinite at the newest step. The curve has a gap there; the row is kept.",
        is_danger=True,
    ),
    Sign(
        "refused", "Numbers refused", NOW, COUNT, Rule(0, least=1), ("groups", ""),
        "Of the last 10 steps: the factors could not be used and outcome advantages went out. The server's "
        "log names the rows.",
        is_danger=True,
    ),
    Sign(
        "inverted", "Inverted rewards", NOW, COUNT, Rule(0, least=1), ("groups", ""),
        "Of the last 10 steps: a failure stands above a pass by its own shaped reward, before anything was "
        "redistributed.",
    ),
    Sign(
        "dead_letters", "Graders died again and again", NOW, COUNT, Rule(0, least=1), ("groups", ""),
        "Of the last 10 steps: nobody tries again; outcome advantages went out. The server's log and the "
        "grader page say more.",
        is_danger=True,
    ),
]  # fmt: skip
SIGNS = {sign.key: sign for sign in _SIGNS}
