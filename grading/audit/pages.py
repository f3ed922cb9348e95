"""What the audit pages show. Before the reveal nothing here reads an arm, a run, or a rollout's own id."""

from dataclasses import dataclass

from django.urls import reverse
from django.utils.safestring import mark_safe

from grading.audit import citing, sessions
from grading.audit.between import FILES_AT_ONCE, ROWS_AT_ONCE, between
from grading.audit.form import Posted
from grading.audit.reading import newest_verdicts, placed
from grading.audit.transcript import url_of
from grading.audit.workspace import AuditWorkspace
from grading.errors import NotFound
from grading.grader.shown import Shown
from grading.integrity.events import event_text
from grading.models import Audit, AuditGroup, AuditVerdict
from grading.review.diffs import RowOptions, file_head_html, file_rows_html
from grading.review.diffs.text import visible
from grading.review.pages.ansi import plain
from grading.review.pages.event_words import kind_of, line_of
from grading.scoring.criteria import CRITERIA, FLAGS

EVENTS_AT_ONCE = 40
LISTED = 200  # transcripts
EVENT_CHARS = 20_000
TESTS_SHOWN = 60
IDLE = ("passed", "skipped", "xfailed")


def list_row(audit: Audit) -> dict:
    counts = sessions.counts(audit)
    judged = counts["done"] + counts["failed"]
    return {"audit": audit, "judged": judged, "all": counts["all"], "failed": counts["failed"]}


def audit_page(audit: Audit, *, user) -> dict:
    """Context of grading/audit.html before the reveal: how far it is."""
    counts = sessions.counts(audit)
    failed = AuditVerdict.objects.filter(group__audit=audit, is_valid=False, group__state=AuditGroup.State.FAILED)
    return {
        "audit": audit,
        "counts": counts,
        "judged": counts["done"] + counts["failed"],
        "finished": sessions.is_finished(audit),
        "problems": [_problem(one) for one in failed.order_by("-pk")[:5]],
        "transcripts": _numbered(audit),
        "may_judge": user.may("reviewer", audit.team_id),
        "may_admin": user.may("admin", audit.team_id),
    }


def _numbered(audit: Audit) -> list[dict]:
    """The transcripts there are, by the numbers of their groups."""
    numbers = dict(audit.groups.values_list("pk", "place"))
    return [{"number": numbers[pk] + 1, "url": url} for pk, url in transcripts(audit).items()][:LISTED]


def _problem(verdict: AuditVerdict) -> dict:
    first = verdict.problems[0] if verdict.problems else {"what": "no reason was kept"}
    return {"place": verdict.group.place + 1, "words": visible(str(first.get("what", "")))[:300]}


@dataclass
class Session:
    """One pooled group in front of a person: its rollouts scrubbed, two of them opened side by side."""

    group: AuditGroup
    left: str = ""
    right: str = ""
    is_between: bool = False  # the two results compared, not the two patches side by side

    def __post_init__(self):
        # everybody sees the same order: the letters are drawn already
        self.workspace = AuditWorkspace(self.group, seed=self.group.code)
        self.letters = sorted(self.workspace.shown)
        if self.left not in self.letters:
            self.left = self.letters[0]
        if self.right not in self.letters:
            self.right = next((one for one in self.letters if one != self.left), self.left)

    def shown(self, letter: str) -> Shown:
        if letter not in self.workspace.shown:
            raise NotFound("no such candidate", got=letter[:10], expected=", ".join(self.letters))
        return self.workspace.shown[letter]

    def look(self, said: str) -> None:
        """`left:C`, `right:C`, or `view:between` and `view:patches`: what a button without a script asks for."""
        side, _, value = said.partition(":")
        if side == "view":
            self.is_between = value == "between"
        elif value in self.letters:
            setattr(self, "right" if side == "right" else "left", value)

    def page(self, posted: Posted | None = None, errors=()) -> dict:
        posted = posted or Posted()
        return {
            "audit": self.group.audit,
            "group": self.group,
            "number": self.group.place + 1,
            "groups": self.group.audit.groups.count(),
            "statement": visible(self.workspace.scrub(self.workspace.statement)),
            "criteria": CRITERIA,
            "rows": [self._row(self.workspace.shown[letter], posted) for letter in self.letters],
            "notes": posted.notes,
            "about_choices": citing.ABOUT,
            "citations": citing.rows(posted.cited),
            "errors": (*posted.errors, *errors),
            **self.pair(),
        }

    def pair(self) -> dict:
        return {
            "audit": self.group.audit,
            "group": self.group,
            "letters": self.letters,
            "left": self.left,
            "right": self.right,
            "is_between": self.is_between,
        } | self._looked()

    def _looked(self) -> dict:
        if self.is_between and self.left != self.right:
            return between(self.shown(self.left), self.shown(self.right))
        return {"columns": [self._column(self.shown(letter)) for letter in dict.fromkeys((self.left, self.right))]}

    def _row(self, one: Shown, posted: Posted) -> dict:
        patch = one.parsed
        return {
            "letter": one.letter,
            "passed": one.passed,
            "twins": ", ".join(one.twins),
            "size": f"{len(patch.files)} file{'s' * (len(patch.files) != 1)}",
            "added": patch.added,
            "removed": patch.removed,
            "scores": [{"key": c, "value": posted.typed.get(f"{one.letter}-{c}", "")} for c in CRITERIA],
            "flags": [{"key": f, "is_set": f"{one.letter}-{f}" in posted.raised} for f in FLAGS],
            "place": posted.typed.get(f"place-{one.letter}", ""),
            "reason": posted.typed.get(f"reason-{one.letter}", ""),
        }

    def _column(self, one: Shown) -> dict:
        tests = sorted(one.tests, key=lambda test: test.get("status") in IDLE)
        code = self.group.code
        return {
            "letter": one.letter,
            "passed": one.passed,
            "files": [self._file(one, n) for n in range(min(len(one.parsed.files), FILES_AT_ONCE))],
            "more_files": max(0, len(one.parsed.files) - FILES_AT_ONCE),
            "tests": [
                {name: visible(str(value))[:500] for name, value in test.items()} for test in tests[:TESTS_SHOWN]
            ],
            "test_count": len(tests),
            "failing": sum(test.get("status") not in IDLE for test in tests),
            "event_count": one.event_count,
            "events_url": reverse("audit-events", args=[self.group.audit_id, code, one.letter]),
        }

    def _file(self, one: Shown, index: int) -> dict:
        file = one.parsed.files[index]
        options = RowOptions(one.letter, index, caption=f"Changes of {one.letter}", max_rows=ROWS_AT_ONCE)
        rows = file_rows_html(file, cited={}, options=options) if file.hunks else ""
        hidden = max(0, file.line_count - ROWS_AT_ONCE) if file.hunks else 0
        # every byte of the patch is escaped there
        html = {"head": mark_safe(file_head_html(file)), "html": mark_safe(rows)}  # noqa: S308
        return html | {"hidden": hidden, "path": file.path}

    def events(self, letter: str, start: int) -> dict:
        one = self.shown(letter)
        stop = min(start + EVENTS_AT_ONCE, one.event_count)
        found = [(n, one.event(n)) for n in range(start, stop)]
        url = reverse("audit-events", args=[self.group.audit_id, self.group.code, letter])
        return {
            "audit": self.group.audit,
            "group": self.group,
            "letter": letter,
            "events": [_event(n, event) for n, event in found if event is not None],
            "next_url": f"{url}?start={stop}" if stop < one.event_count else "",
            "left": one.event_count - stop,
        }


def _event(index: int, event: dict) -> dict:
    text = "\n".join(visible(line) for line in plain(event_text(event)).split("\n"))
    cut = len(text) - EVENT_CHARS
    return {"index": index, "kind": kind_of(event), "line": line_of(event), "text": text[:EVENT_CHARS], "cut": cut}


def group_links(audit: Audit) -> list[dict]:
    """After the reveal: each pooled group, who stood behind each letter, and where to look."""
    verdicts, told, rows = newest_verdicts(audit), transcripts(audit), []
    groups = audit.groups.select_related("task").prefetch_related("candidates__arm", "candidates__trajectory__group")
    for group in groups:
        verdict = verdicts.get(group.pk)
        places = placed(verdict) if verdict else {}
        candidates = [
            {"letter": one.letter, "arm": one.arm, "trajectory": one.trajectory, "passed": one.passed,
             "place": places.get(one.letter, (None, None))[0], "tier": places.get(one.letter, (None, None))[1]}
            for one in group.candidates.all()
        ]  # fmt: skip
        candidates.sort(key=lambda one: (one["place"] is None, one["place"] or 0, one["letter"]))
        rows.append({"group": group, "verdict": verdict, "candidates": candidates, "transcript": told.get(group.pk)})
    return rows


def transcripts(audit: Audit) -> dict[int, str]:
    """Group -> the address of what its judge did and said last, in the order of the groups."""
    rows = AuditVerdict.objects.filter(group__audit=audit).told().order_by("group__place", "pk")
    tries: dict[int, int] = {}
    found: dict[int, str] = {}
    for verdict in rows.select_related("group").only("pk", "transcript", "author", "group__code", "group__audit_id"):
        tries[verdict.group_id] = tries.get(verdict.group_id, 0) + 1
        if verdict.transcript or verdict.author_id:
            found[verdict.group_id] = url_of(verdict.group, tries[verdict.group_id])
    return found
