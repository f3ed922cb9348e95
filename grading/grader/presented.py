"""A reply about letters as one about the group's ids: scrubbed words become the raw ones they stand for."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from grading.grader.scrub import Scrub
from grading.grader.shape import CandidateReply, Finding, GraderReply, Revision
from grading.grader.shown import Shown
from grading.review.anchors import Citation, Place, words
from grading.review.diffs.patch import Patch
from grading.review.diffs.text import line_text, utf16_of


class Ids:
    """Translates replies of one grading. Letters of nobody here stay as they are, and never become somebody's id."""

    def __init__(self, shown: Mapping[str, Shown], scrub: Scrub):
        self.shown, self.scrub = shown, scrub
        self._ids = {letter: one.raw.id for letter, one in shown.items()}

    def reply(self, said: GraderReply) -> GraderReply:
        """Returns: the same reply with ids, raw paths, raw names of results and raw quotes."""
        order = said.order and {
            tier: tuple(tuple(map(self.id, tied)) for tied in groups) for tier, groups in said.order.items()
        }
        return replace(
            said,
            candidates=tuple(map(self._candidate, said.candidates)),
            order=order,
            revisions=tuple(map(self._revision, said.revisions)),
            findings=tuple(map(self._finding, said.findings)),
        )

    def id(self, letter: str) -> str:
        """The id behind a letter; another word is kept, marked where it happens to be somebody's id."""
        if letter in self._ids:
            return self._ids[letter]
        while letter in self._ids.values():
            letter += "?"
        return letter

    def _candidate(self, entry: CandidateReply) -> CandidateReply:
        cited = tuple(replace(one, citation=self.citation(one.citation)) for one in entry.citations)
        return replace(entry, id=self.id(entry.id), citations=cited)

    def _revision(self, revision: Revision) -> Revision:
        named = tuple(map(self.id, revision.candidates))
        return replace(revision, candidates=named, citations=tuple(map(self.citation, revision.citations)))

    def _finding(self, finding: Finding) -> Finding:
        return replace(finding, id=self.id(finding.id), citations=tuple(map(self.citation, finding.citations)))

    def citation(self, said: Citation) -> Citation:
        """The citation of the raw rollout; one that points nowhere is only given the id, for `parse` to refuse."""
        citation, shown = replace(said, candidate=self.id(said.candidate)), self.shown.get(said.candidate)
        if shown is None:
            return citation
        if said.kind == "result":
            return replace(citation, result=shown.results.get(said.result, said.result))
        if said.kind == "event":
            return replace(citation, quote=self._raw_event_quote(shown, said))
        citation = replace(citation, path=shown.raw_path(said.path, said.side))
        if said.quote is None or shown.parsed is shown.raw.parsed or shown.raw.resolve(citation).resolves:
            return citation
        place = shown.lettered(frozenset()).resolve(said).place
        raw_words = _lines_at(shown.raw.parsed, place) if place else ""
        return replace(citation, quote=raw_words or said.quote)

    def _raw_event_quote(self, shown: Shown, said: Citation) -> str:
        """The raw words at the cited event, else at another one that has the scrubbed words."""
        quote = words(said.quote)
        pattern = re.compile(r"\s+".join(map(re.escape, quote.split())))
        for index in _nearest_first(said.event, shown.event_count, "[" in quote):
            raw = shown.raw.event_text(index)
            if raw is None or quote in words(raw):
                return said.quote
            scrubbed = self.scrub.prose(raw)
            if found := pattern.search(scrubbed.text):
                start, end = scrubbed.raw_span(*found.span())
                return raw[start:end]
        return said.quote


def _nearest_first(cited: int, count: int, is_scrubbed: bool) -> Iterator[int]:
    """The cited event; where the quote holds a placeholder, every other one after it."""
    if cited < count:
        yield cited
    if is_scrubbed:
        yield from (n for n in range(count) if n != cited)


def _lines_at(patch: Patch, place: Place) -> str:
    """The raw words of the changed lines at a place, whole: lines have the same numbers in both patches."""
    if place.file is None or place.file >= len(patch.files):
        return ""
    file = patch.files[place.file]
    codec, last = utf16_of(file, place.side), place.line_end or place.line
    for hunk in file.hunks:
        numbered = [(line.number_on(place.side), line) for line in hunk.lines]
        inside = [line for n, line in numbered if n is not None and place.line <= n <= last]
        if inside:
            return "\n".join(line_text(line.content, codec).rstrip("\r") for line in inside).strip()
    return ""
