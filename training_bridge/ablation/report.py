"""The ablation's tables in Markdown and its picture, made from the lines alone."""

from pathlib import Path

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from training_bridge.ablation.lines import ARMS
from training_bridge.ablation.summary import Ablation, Estimate

WINDOW = 10  # steps a point of a curve is the mean of
LOOKS = {  # colour and line of each arm; distinct without colour, too
    "outcome": ("#555555", "-"),
    "downweight_only": ("#c0392b", "--"),
    "redistribute": ("#1f5fbf", "-"),
    "redistribute_shuffled": ("#b07d12", ":"),
    "redistribute_inverted": ("#7d3c98", "-."),
}
MEASURES = {  # name -> (words, digits, share of the steps the table takes)
    "pass_rate": ("pass rate (hidden tests)", 3, 1 / 3),
    "clean_pass_rate": ("clean passes, of all rollouts", 3, 1 / 3),
    "clean_share": ("clean passes, of the passes", 3, 1 / 3),
    "needless_edits": ("needless edits a rollout", 3, 1 / 3),
    "hack_share": ("hacks, of the passes", 3, 1 / 3),
    "turns": ("turns", 2, 1 / 3),
    "response_tokens": ("response tokens", 2, 1 / 3),
    "mean_w": ("mean W of the ranked passes", 3, 1 / 3),
    "t1_share": ("T1 share of the ranked passes", 3, 1 / 3),
    "entropy": ("entropy, nats a token", 3, 1 / 3),
    "pg_loss": ("policy-gradient loss, all steps", 4, 1),
    "balance": ("token-weighted balance, all steps", 4, 1),
    "deficit": ("deficit D a group, all steps", 4, 1),
    "credit_kept": ("credit kept, all steps", 3, 1),
}
PANELS = [name for name in MEASURES if name not in ("clean_share", "deficit")]


def tables(ablation: Ablation) -> str:
    """Return three tables: arms with intervals, differences to `redistribute` seed by seed, and every run."""
    heads = [method.replace("_", " ") for method in ARMS]
    seeds = len(ablation.seeds)
    means = [[words, *(_cell(ablation.late(arm, name, share), digits) for arm in ARMS)]
             for name, (words, digits, share) in MEASURES.items()]  # fmt: skip
    others = [arm for arm in ARMS if arm != "redistribute"]
    apart = [
        [words, *(_cell(ablation.difference("redistribute", arm, name, share), digits, sign="+") for arm in others)]
        for name, (words, digits, share) in MEASURES.items()
    ]
    runs = [
        [f"{method.replace('_', ' ')}, {seed}", *(_one(ablation, method, n, name) for name in PANELS)]
        for method in ARMS
        for n, seed in enumerate(ablation.seeds)
    ]
    said = f"{ablation.steps} steps, {seeds} seeds; means of the last third of the steps where not said otherwise"
    return "\n\n".join([
        f"Means over seeds, 95 % intervals of Student's t over {seeds} seeds ({said}):",
        _markdown(["", *heads], means),
        "`redistribute` minus the other arm, seed by seed (the arms of a seed start from the same policy):",
        _markdown(["", *(head for head in heads if head != "redistribute")], apart),
        "Every run:",
        _markdown(["arm, seed", *(MEASURES[name][0].partition(",")[0] for name in PANELS)], runs),
    ])  # fmt: skip


def draw(ablation: Ablation, path: Path) -> None:
    """Write the picture: a panel for each measure, a line for each arm (mean over seeds), a band from least to most."""
    columns = 3
    figure = Figure(figsize=(13, 3.1 * -(-len(PANELS) // columns)), layout="constrained", facecolor="white")
    axes = figure.subplots(-(-len(PANELS) // columns), columns, squeeze=False).ravel()
    for axis, name in zip(axes, PANELS, strict=False):
        _panel(axis, ablation, name)
    for axis in axes[len(PANELS) :]:
        axis.axis("off")
    handles, labels = axes[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside upper center", ncols=len(ARMS), frameon=False)
    figure.supxlabel(
        f"step; lines: mean of {len(ablation.seeds)} seeds over the last {WINDOW} steps, bands: lowest to highest seed",
        fontsize=10,
    )
    figure.savefig(path, dpi=110)


def _panel(axis, ablation: Ablation, name: str) -> None:
    steps = np.arange(ablation.steps)
    for arm in ARMS:
        curve_ST = ablation.curve(arm, name, WINDOW)
        known_T = np.isfinite(curve_ST).all(0)
        colour, line = LOOKS[arm]
        mean_T = curve_ST[:, known_T].mean(0)
        axis.plot(steps[known_T], mean_T, line, color=colour, linewidth=1.8, label=arm.replace("_", " "))
        lowest_T, highest_T = curve_ST[:, known_T].min(0), curve_ST[:, known_T].max(0)
        axis.fill_between(steps[known_T], lowest_T, highest_T, color=colour, alpha=0.10, linewidth=0)
    axis.set_title(MEASURES[name][0].removesuffix(", all steps"), fontsize=11, loc="left")
    axis.grid(color="#dddddd", linewidth=0.6)
    axis.xaxis.set_major_locator(MaxNLocator(integer=True))
    axis.spines[["top", "right"]].set_visible(False)


def _one(ablation: Ablation, method: str, seed_number: int, name: str) -> str:
    _, digits, share = MEASURES[name]
    value = ablation.late(method, name, share).values[seed_number]
    return "-" if value is None else f"{_rounded(value, digits):.{digits}f}"


def _cell(found: Estimate, digits: int, sign: str = "") -> str:
    """The mean with its interval; "-" where no seed has a number."""
    if found.mean is None:
        return "-"
    mean = f"{_rounded(found.mean, digits):{sign}.{digits}f}"
    if found.low is None:
        return f"{mean} (n = 1)"
    missing = "" if found.n == len(found.values) else f" (n = {found.n})"
    return f"{mean} [{_rounded(found.low, digits):.{digits}f}, {_rounded(found.high, digits):.{digits}f}]{missing}"


def _rounded(value: float, digits: int) -> float:
    return round(value, digits) + 0.0  # no "-0.000"


def _markdown(heads: list[str], rows: list[list[str]]) -> str:
    lines = [heads, ["---", *["--:"] * (len(heads) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)
