"""Replies for tests: whole and valid by construction, with evidence that is really there."""

from dataclasses import replace

from grading.grader import gather, job, verdicts
from grading.grader.parse import check
from grading.grader.shape import CandidateReply, Cited, GraderReply
from grading.models import RolloutGroup, Verdict
from grading.review.anchors import Citation
from grading.scoring.criteria import CRITERIA
from grading.states import GroupState, Policy
from tests.factories import make_group, make_run


def line_of(trajectory, *, line: int = 2) -> Citation:
    """The added line of a factory patch."""
    return Citation("patch_line", trajectory.external_id, path="app.py", side="new", line=line)


def reply_for(group: RolloutGroup, scores: dict[str, int] | None = None) -> GraderReply:
    """One score for all five criteria by letter (default 4); scores below 4 cite the patch."""
    entries = []
    for trajectory in group.trajectories.filter(outcome="passed", integrity=""):
        score = (scores or {}).get(trajectory.letter, 4)
        cited = tuple(Cited(c, line_of(trajectory)) for c in CRITERIA) if score < 4 else ()
        entries.append(CandidateReply(trajectory.external_id, dict.fromkeys(CRITERIA, score), citations=cited))
    return GraderReply(tuple(entries))


def grade(group: RolloutGroup, scores: dict[str, int] | None = None) -> Verdict:
    """Take a complete group through claim and verdict, policy included."""
    assert group.claim(by="test", lease_s=60)
    verdict = job.store_verdict(group, reply_for(group, scores), fencing=group.fencing, grader="scripted")
    group.refresh_from_db()
    return verdict


def add_verdict(group: RolloutGroup, scores: dict[str, int] | None = None, **fields) -> Verdict:
    """A stored training verdict, without any move."""
    reply, material = reply_for(group, scores), gather.material_of(group)
    checked = check(reply, material, group.run.rubric.rubric)
    return verdicts.store(group, reply, checked, material, **({"grader": "scripted"} | fields))


def add_flag(group: RolloutGroup, flag: str = "unrequested_rewrite", *, letter: str = "A") -> Verdict:
    """A verdict that finds all equal but for one flag, which cites the candidate's patch."""
    reply, material = reply_for(group, dict.fromkeys("ABC", 5)), gather.material_of(group)
    trajectory = group.trajectories.get(letter=letter)
    entries = [
        replace(one, flags={flag: True}, citations=(Cited(flag, line_of(trajectory)),))
        if one.id == trajectory.external_id
        else one
        for one in reply.candidates
    ]
    reply = GraderReply(tuple(entries))
    return verdicts.store(group, reply, check(reply, material, group.run.rubric.rubric), material, grader="scripted")


def held_group(**fields) -> RolloutGroup:
    """A graded group that waits for a person."""
    run = fields.pop("run", None) or make_run(policy=Policy.MANUAL)
    group = make_group(run=run, state=GroupState.GRADED, held=True, **fields)
    add_verdict(group)
    return group
