"""The review page: ranking, two candidates side by side, evidence, and what this person may do."""

import re
from os.path import commonprefix

from grading.models import Trajectory
from grading.review.correction_form import ABOUT, Posted, PostedCitation, read_citations
from grading.review.diffs.text import visible
from grading.review.drafts import Draft, is_ranked
from grading.review.pages import answers, columns, evidence
from grading.review.pages.ansi import plain
from grading.review.pages.ranking import ABOUT_CHOICES, ranking
from grading.review.pages.sitting import OUTCOME_WORDS, Sitting
from grading.review.pages.workbench import workbench
from grading.review.rounds import Turn
from grading.states import EndReason, Outcome
from grading.templatetags.figures import fixed

EMPTY_ROWS = 2
TITLE_CHARS = 300
ID_CHARS = 9  # of a rollout's own id, where a narrow list names it
END_WORDS = {
    EndReason.FILTERED_ALL_PASSED: "Every valid rollout passed, so the group does not train.",
    EndReason.FILTERED_ALL_FAILED: "No valid rollout passed, so the group does not train.",
    EndReason.EXCLUDED_BROKEN_EVALUATION: "The task's evaluation is broken, so the group does not train.",
    EndReason.EXCLUDED_NO_VALID_TRAJECTORY: "No rollout is valid, so the group does not train.",
    EndReason.EXCLUDED_BAD_REWARD: "A reward is no finite number, so the group does not train.",
    EndReason.ABANDONED: "The life of the job that made it is over.",
}


def title_of(statement: str) -> str:
    """The first paragraph of a task's statement on one line, without terminal codes and hidden characters.

    Statements are wrapped by hand as often as not: their first line alone stops in mid-sentence. A heading is its
    line alone.
    """
    said = []
    for line in statement[: 8 * TITLE_CHARS].splitlines():
        words = line.strip(" #*\t\r")
        if said and (not words or line.lstrip().startswith(("#", "```", "---", "==="))):
            break
        said += [words] * bool(words)
        if line.lstrip().startswith("#") and words:
            break
    title = visible(plain(" ".join(said)))
    return title if len(title) <= TITLE_CHARS else f"{title[:TITLE_CHARS]}…"


def group_page(
    sitting: Sitting,
    *,
    query: dict,
    draft: Draft | None = None,
    posted: Posted | None = None,
    errors: tuple[str, ...] = (),
    conflict: dict | None = None,
) -> dict:
    """The whole context of grading/group.html."""
    group, table = sitting.group, ranking(sitting, draft, posted)
    left, right = sides(sitting, table, query)
    answers_table = answers.reviews_table(sitting)
    first = ["conflict"] * bool(conflict) + ["reviews"] * bool(answers_table)
    keys = [*first, *(key for key, *_ in columns.TABS)]
    tab = query.get("tab") if query.get("tab") in keys and not conflict else _first_tab(sitting, first)
    return {
        "group": group,
        "run": group.run,
        "title": title_of(group.task.statement),
        "counts": counts(sitting),
        "deadline": sitting.deadline,
        "claim": sitting.claim,
        "may_claim": sitting.may_claim,
        **may(sitting),
        "decision": sitting.decision,
        "verdict": verdict_words(sitting),
        "end_words": END_WORDS.get(group.end_reason, group.end_reason),
        "errors": [sitting.lettered(error) for error in errors],
        "conflict": conflict,
        **table,
        "letters": letter_choices(sitting, table),
        "round": answers.round_words(sitting),
        "answers": answers_table,
        "is_blind": sitting.is_hidden,
        **workbench(sitting, (left, right), tab=tab, query=query, own=[_own_tab(key, sitting) for key in first]),
        "evidence": evidence.parts(sitting, tuple(t.letter for t in (left, right) if t)),
        "about_choices": ABOUT_CHOICES,
        "draft": draft_fields(posted, query, cited_first(sitting, right, left)),
    }


def _own_tab(key: str, sitting: Sitting) -> dict:
    """A tab that is there only now and then."""
    if key == "conflict":
        return {"key": key, "label": "Both versions", "count": None, "shortcut": "v"}
    return {"key": key, "label": "Reviews", "count": len(sitting.round.submitted), "shortcut": "v"}


def _first_tab(sitting: Sitting, own: list[str]) -> str:
    """What somebody is shown who asked for nothing: what they must compare before they can go on."""
    if "conflict" in own:
        return "conflict"
    return "reviews" if own and sitting.turn in (Turn.THIRD, Turn.AGREED) else "diff"


def may(sitting: Sitting) -> dict:
    """What the buttons say. The steps decide again when one is pressed."""
    may_review = sitting.turn == Turn.REVIEW and sitting.round.has_seat_for(sitting.user)
    return {
        "may_review": may_review,
        "may_edit": may_review or not sitting.why_not_decide,
        "may_find": sitting.may_find,
        "may_decide": not sitting.why_not_decide,
        "why_not_decide": sitting.why_not_decide,
        "may_grade_again": sitting.may_grade_again,
        "may_approve": not sitting.why_not_decide and not sitting.why_not_approve,
        "why_not_approve": sitting.why_not_approve,
        "may_fall_back": sitting.may_fall_back,
    }


def counts(sitting: Sitting) -> dict:
    rows, run = sitting.trajectories, sitting.group.run
    valid = [t for t in rows if t.outcome != Outcome.INFRA_INVALID and not (run.mask_truncated and t.is_truncated)]
    return {
        "passed": sum(is_ranked(t, sitting.group) for t in valid),
        "valid": len(valid),
        "infra_invalid": sum(t.outcome == Outcome.INFRA_INVALID for t in rows),
    }


def verdict_words(sitting: Sitting) -> dict | None:
    verdict = sitting.verdict
    if verdict is None:
        return None
    problems = [sitting.lettered(problem_words(problem)) for problem in verdict.problems]
    return {
        "pk": verdict.pk,
        "number": verdict.number,
        "said_by": verdict.said_by,
        "is_valid": verdict.is_valid,
        "problems": problems[:6] + ([f"and {len(problems) - 6} more"] if len(problems) > 6 else []),
        "notes": [sitting.lettered(note) for note in verdict.notes],
    }


def problem_words(problem: dict) -> str:
    said = [problem.get("what") or ""]
    said += [f"got {problem['got']}"] if problem.get("got") else []
    said += [f"expected {problem['expected']}"] if problem.get("expected") else []
    return ", ".join(said)


def letter_choices(sitting: Sitting, table: dict) -> list[dict]:
    """All candidates in the order drawn for this person."""
    ranked = {
        card.letter: f"T{lane.tier} {fixed(card.w)}" for lane in table["lanes"] if lane.tier for card in lane.cards
    }
    shared = re.match(r".*[^A-Za-z0-9]|", commonprefix([t.external_id for t in sitting.trajectories]), re.DOTALL).end()
    choices = []
    for t in sitting.trajectories:
        words = ranked.get(t.letter) or (OUTCOME_WORDS[t.outcome] if not t.integrity else f"confirmed {t.integrity}")
        id = t.external_id if sitting.is_revealed else ""
        end = f"…{id[shared:][-ID_CHARS:]}" if len(id) > ID_CHARS + 1 else id  # what all ids share tells none apart
        choices.append({"letter": t.letter, "words": " · ".join(filter(None, (words, end))), "whole": id})
    return choices


def sides(sitting: Sitting, table: dict, query: dict) -> tuple[Trajectory | None, Trajectory | None]:
    """Who stands left and right: as asked, else the best and the first one of the next tier; never one on both."""
    lanes = [[card.letter for card in lane.cards] for lane in table["lanes"] if lane.cards]
    ranked = [letter for lane in lanes for letter in lane]
    contrast = lanes[1][0] if len(lanes) > 1 else (ranked[1] if len(ranked) > 1 else "")
    rest = [card["letter"] for card in (*table["unranked"], *table["context_cards"])]
    order = list(dict.fromkeys([letter for letter in (*ranked[:1], contrast, *ranked, *rest) if letter]))
    by_letter = sitting.by_letter
    left = by_letter.get(query.get("left", ""))
    right = by_letter.get(query.get("right", ""))
    if left == right and len(by_letter) > 1:
        left = None
    if left is None:
        left = next((by_letter[one] for one in order if not right or one != right.letter), None)
    if right is None:
        right = next((by_letter[one] for one in order if not left or one != left.letter), None)
    return left, right


def cited_first(sitting: Sitting, *sides: Trajectory | None) -> str:
    """Whose citation an empty row is for: the ranked one right, else left."""
    return next((t.letter for t in sides if t and is_ranked(t, sitting.group)), "")


def draft_fields(posted: Posted | None, query: dict, letter: str) -> dict:
    """Reason and citations as typed, or prefilled by a link, and two empty rows more."""
    if posted:
        rows = [_row(n, cited) for n, cited in enumerate(posted.citations, 1)]
    else:
        names = ("letter", "about", "kind", "place", "quote")
        asked = {f"cite-1-{name}": [query.get(f"cite_{name}", "")] for name in names}
        rows = [_row(1, cited) | {"error": ""} for cited in read_citations(asked)]
    empty = {"letter": letter, "about": ABOUT[0], "kind": "new", "place": "", "quote": "", "error": ""}
    rows += [{"n": len(rows) + 1 + k, **empty} for k in range(EMPTY_ROWS)]
    return {"reason": posted.reason if posted else "", "citations": rows}


def _row(n: int, cited: PostedCitation) -> dict:
    said = {name: getattr(cited, name) for name in ("letter", "about", "kind", "place", "quote", "error")}
    return {"n": n, **said}
