"""Groups of scored candidates, scalar and as arrays."""

import random
from collections.abc import Sequence

import numpy as np

from grading.calibration.replay import Replayed, Scored, places, replay, tiers, weighted
from grading.scoring.criteria import CRITERIA, FLAGS, Candidate, Rubric
from grading.scoring.grades import Grades
from grading.scoring.tiers import TIER_NAMES, TIERS


def scored(groups: Sequence[Sequence[Candidate]], rubric: Rubric, rankings: Sequence[dict | None]) -> Scored:
    """Arrays of groups as a verdict under `rubric` would be stored; a ranking of None is the order by W."""
    shape = (len(groups), max(map(len, groups), default=0))
    scores_BGC, flags_BG = np.ones((*shape, len(CRITERIA)), np.int8), np.zeros(shape, np.uint8)
    there_BG, revised_B = np.zeros(shape, bool), np.array([r is not None for r in rankings], bool)
    for b, group in enumerate(groups):
        for g, one in enumerate(group):
            scores_BGC[b, g] = [one.scores[c] for c in CRITERIA]
            flags_BG[b, g] = sum(1 << FLAGS.index(flag) for flag in one.flags)
            there_BG[b, g] = True
    bare_BG = np.full(shape, -1, np.int16)
    bare = Scored(scores_BGC, flags_BG, there_BG, np.zeros(shape[0], bool), bare_BG, bare_BG, bare_BG)
    tier_BG = tiers(bare, rubric)
    base_BG = places(tier_BG, weighted(bare, rubric)[0])
    place_BG = base_BG.copy()
    for b, ranking in enumerate(rankings):
        for name in TIER_NAMES.values() if ranking else ():
            for k, tied in enumerate(ranking.get(name, ())):
                for id in tied:
                    place_BG[b, [one.id for one in groups[b]].index(id)] = k
    return Scored(scores_BGC, flags_BG, there_BG, revised_B, tier_BG, base_BG, place_BG)


def random_group(draw: random.Random, *, most: int = 16) -> list[Candidate]:
    """Scores as graders give them: rarely 1, so that all tiers are there."""
    scores = [1, 2, 3, 3, 4, 4, 4, 5, 5, 5]
    return [
        Candidate(
            f"c{n}",
            {c: draw.choice(scores) for c in CRITERIA},
            frozenset(flag for flag in FLAGS if draw.random() < 0.05),
        )
        for n in range(draw.randint(1, most))
    ]


def same_as(replayed: Replayed, b: int, group: Sequence[Candidate], grades: Grades) -> None:
    """Every number of one group equals the scalar ones, to the bit."""
    place = {id: k for tier in TIERS for k, tied in enumerate(grades.ranking[tier]) for id in tied}
    for g, one in enumerate(group):
        assert replayed.tier_BG[b, g] == grades.tier[one.id]
        assert replayed.place_BG[b, g] == place[one.id]
        assert int(replayed.weighted_BG[b, g]) == grades.weighted_score[one.id] * replayed.scale
        assert replayed.factor_BG[b, g] == float(grades.factor[one.id])


def replayed_alone(group: Sequence[Candidate], rubric: Rubric, ranking: dict | None = None) -> Replayed:
    return replay(scored([group], rubric, [ranking]), rubric)
