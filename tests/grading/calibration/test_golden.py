"""Every case of the golden statistics that the product needs gives the golden value; what is undefined stays so."""

import json
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest

from grading.calibration import alpha, curves, intervals, kappa, prediction, ranks, shifts
from tests.grading.calibration import test_golden_fit
from training_bridge.redistribution.outcome import outcome_advantages

GOLDEN = Path(__file__).resolve().parents[3].parent / "shared" / "golden" / "statistics.json"
CASES = json.loads(GOLDEN.read_text())["cases"] if GOLDEN.exists() else []
NEEDED = [case for case in CASES if not case["reference_only"]]
# Tested beside the fit, in test_golden_fit.py.
OF_THE_FIT = {
    "bradley_terry", "davidson_ties", "rao_kupper_ties", "plackett_luce", "plackett_luce_ties",
    "pairwise_logistic_simplex",
}  # fmt: skip

OURS_OF_SEVERAL = {"dr_grpo_mean_centered"}  # the other columns are what other estimators make of the same rewards


def floats(values) -> np.ndarray:
    return np.array([np.nan if v is None else v for v in values], float)


def asi_mean(y, y_proxy, pi, lam):
    got = prediction.asi(floats(y), floats(y_proxy), floats(pi), lam=lam)
    return {"estimate": got.value, "ci": [got.low, got.high], "formula": got.value}


def binomial_ci(k, n, conf):
    found = {"wilson": intervals.wilson(k, n, conf), "clopper_pearson": intervals.clopper_pearson(k, n, conf)}
    return None if None in found.values() else {name: list(ends) for name, ends in found.items()}


def cluster_bootstrap(values, groups):
    values, groups = np.array(values), np.array(groups)
    sums = np.array([[values[groups == g].sum(), (groups == g).sum()] for g in np.unique(groups)])
    got = intervals.resampled(sums, intervals.ratio)
    low, high = np.percentile(got, [2.5, 97.5])
    return {
        "n_resamples": len(got), "mean_of_boot": got.mean(), "se_boot": got.std(),
        "p2_5": low, "p97_5": high, "min": got.min(), "max": got.max(),
    }  # fmt: skip


def cluster_se(values, groups):
    robust, n, g = intervals.cluster_se(values, groups), len(values), len(set(groups))
    iid = np.std(values, ddof=1) / n**0.5
    stata = robust * (g / (g - 1) * (n - 1) / (n - 1)) ** 0.5
    return {"mean": np.mean(values), "se_cluster_cr0": robust, "se_cluster_stata": stata, "se_iid": iid}


def cohen_kappa(a=None, b=None, labels=None, table=None, weights=None):
    if table:
        got = kappa.cohen_with_se(np.array(table), weights)
        return {"kappa": got.value, "std_kappa": got.se, "kappa_low": got.low, "kappa_upp": got.high}
    return kappa.cohen(kappa.confusion(a, b, labels), weights or "identity")


def drift(counts=None, a=None, b=None):
    if counts:
        got = shifts.chi2(counts)
        return {"chi2": got.statistic, "pvalue": got.p, "dof": got.dof}
    got = shifts.ks(a, b)
    return {"statistic": got.statistic, "pvalue": got.p}


def group_relative_advantages(rewards):
    return {"dr_grpo_mean_centered": outcome_advantages(np.array([rewards]), np.ones((1, len(rewards)), bool))[0]}


def mcnemar(table):
    got = shifts.mcnemar(table[0][1], table[1][0])
    return {"statistic": got.statistic, "pvalue": got.p}


def pairwise_agreement(human, grader):
    got = ranks.pairs_of(human, grader)
    return {
        "concordant": got.same, "discordant": got.opposite, "human_tie_only": got.tied_one,
        "grader_tie_only": got.tied_other, "both_tie": got.tied_both,
        "acc_decided_half_credit": got.accuracy, "acc_3way": got.three_way,
    }  # fmt: skip


def ppi_mean(Y, Yhat, Yhat_unlabeled, *, lam, alpha, variance="ddof=0"):  # noqa: N803 - names of the file
    """Cases without a word about the variance come from a library that divides by n."""
    lam = None if lam == "tuned" else lam
    got = prediction.ppi(Y, Yhat, Yhat_unlabeled, lam=lam, ddof=int(variance[-1]), confidence=1 - alpha)
    return {"estimate": got.value, "ci": [got.low, got.high], "se": got.se, "lam": got.lam}


def ppi_mean_clustered(y_true, y_proxy, clusters, lam, alpha):
    lam = None if lam == "tuned" else lam
    got = prediction.ppi_clustered(floats(y_true), y_proxy, clusters, lam=lam, confidence=1 - alpha)
    return {"estimate": got.value, "ci": [got.low, got.high]}


def top1_agreement(human, grader):
    got = asdict(ranks.top(human, grader))
    return got | {"p_grader_pick_is_human_top": got["pick"]}


def auc(y, s):
    return curves.auc(y, s)


def brier(y, p):
    return curves.brier(y, p)


def kendall_w(rankings):
    return ranks.kendall_w(rankings)


def krippendorff_alpha(ratings, level):
    return alpha.alpha_of(ratings, level)


def spearman_rho(x, y):
    return ranks.spearman(x, y)


HOW = {
    "asi_mean": asi_mean,
    "auc": auc,
    "binomial_ci": binomial_ci,
    "brier": brier,
    "cluster_bootstrap": cluster_bootstrap,
    "cluster_se": cluster_se,
    "cohen_kappa": cohen_kappa,
    "drift": drift,
    "group_relative_advantages": group_relative_advantages,
    "gwet_ac2": lambda a, b, weights, categories: kappa.gwet(kappa.confusion(a, b, categories), weights),
    "isotonic": lambda x, y: {"fitted": curves.isotonic(x, y).at(np.array(x))},
    "judge_bias_correction": lambda p_judge, sensitivity, specificity: {
        "theta": prediction.rogan_gladen(p_judge, sensitivity=sensitivity, specificity=specificity)
    },
    "kendall_tau_b": lambda x, y: ranks.pairs_of(x, y).tau_b,
    "kendall_w": kendall_w,
    "krippendorff_alpha": krippendorff_alpha,
    "mcnemar": mcnemar,
    "pairwise_agreement": pairwise_agreement,
    "ppi_mean": ppi_mean,
    "ppi_mean_clustered": ppi_mean_clustered,
    "spearman_rho": spearman_rho,
    "top1_agreement": top1_agreement,
}


def is_undefined(value) -> bool:
    return value is None or (np.isscalar(value) or np.ndim(value) == 0) and bool(np.isnan(value))


def compare(got, expected, tol: float) -> None:
    if expected is None:
        assert is_undefined(got), f"{got} where nothing is defined"
    elif isinstance(expected, dict):
        ours = OURS_OF_SEVERAL & expected.keys() or expected.keys()
        assert ours <= got.keys()
        for name in ours:
            compare(got[name], expected[name], tol)
    else:
        np.testing.assert_allclose(got, expected, rtol=0, atol=tol)


@pytest.mark.skipif(not CASES, reason="the golden file is not beside this checkout")
@pytest.mark.parametrize("case", [c for c in NEEDED if c["statistic"] in HOW], ids=lambda case: case["id"])
def test_the_golden_value_is_ours(case):
    compare(HOW[case["statistic"]](**case["inputs"]), case["expected"], case["tol"])


@pytest.mark.skipif(not CASES, reason="the golden file is not beside this checkout")
def test_no_statistic_of_the_golden_file_is_left_to_nobody():
    assert {case["statistic"] for case in NEEDED} - HOW.keys() - OF_THE_FIT == set()
    assert len(NEEDED) > 50
    beside = {case["statistic"] for case in NEEDED if case["id"] in Path(test_golden_fit.__file__).read_text()}
    assert beside >= OF_THE_FIT & {case["statistic"] for case in NEEDED}


def test_kappa_needs_all_its_labels_and_ac1_survives_skew():
    # Without the labels nobody used, 2 and 5 stand side by side and their disagreement counts for less.
    a, b = [1, 2, 5, 5, 1, 2], [1, 5, 5, 2, 1, 1]
    short, whole = (kappa.cohen(kappa.confusion(a, b, labels)) for labels in ((1, 2, 5), (1, 2, 3, 4, 5)))
    # Seen: 9 + 9 + 1 = 19. By chance, rows 2 2 2 and columns 3 1 2 over 6: (2 + 64 + 6 + 36 + 96 + 18) / 6 = 222 / 6.
    assert whole == pytest.approx(1 - 19 * 6 / 222) and short > whole
    assert np.isnan(kappa.cohen(kappa.confusion([4], [4], range(1, 6))))
    skewed = np.array([[16.0, 2], [2, 0]])  # 80 % agree
    assert kappa.cohen(skewed, "identity") == pytest.approx(-1 / 9)
    assert kappa.gwet(skewed) == pytest.approx(0.756, abs=1e-3)


def test_rogan_gladen_of_a_judge_who_tells_nothing_is_undefined():
    assert prediction.rogan_gladen(0.5, sensitivity=0.4, specificity=0.6) is None
    assert prediction.rogan_gladen(0.05, sensitivity=0.9, specificity=0.8) == 0.0
