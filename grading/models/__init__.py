"""Rows of grading: runs and tasks, groups and their history, verdicts with evidence, decisions."""

from grading.models.anchors import Anchor, AnchorRound
from grading.models.audits import Audit, AuditArm, AuditCandidate, AuditGroup, AuditVerdict
from grading.models.calibration import Fit, Gate, GateKind, SpentGroup
from grading.models.decisions import Decision
from grading.models.gradings import Check, Grading
from grading.models.groups import GroupEvent, RolloutGroup
from grading.models.people import MachineToken, Membership, Role, Team, User
from grading.models.reviews import Comment, Notice, Review, ReviewClaim
from grading.models.rubrics import RubricVersion
from grading.models.runs import Life, Run, RunEvent
from grading.models.task_register import Repository, Task, TaskEvent
from grading.models.trajectories import Finding, Signal, SignalRuling, Trajectory
from grading.models.verdicts import Evidence, Verdict, VerdictCandidate

__all__ = [
    "Audit",
    "AuditArm",
    "AuditCandidate",
    "AuditGroup",
    "AuditVerdict",
    "Anchor",
    "AnchorRound",
    "Check",
    "Comment",
    "Decision",
    "Evidence",
    "Finding",
    "Fit",
    "Gate",
    "GateKind",
    "Grading",
    "GroupEvent",
    "Life",
    "MachineToken",
    "Membership",
    "Notice",
    "Repository",
    "Review",
    "ReviewClaim",
    "Role",
    "RolloutGroup",
    "RubricVersion",
    "Run",
    "RunEvent",
    "Signal",
    "SignalRuling",
    "SpentGroup",
    "Task",
    "TaskEvent",
    "Team",
    "Trajectory",
    "User",
    "Verdict",
    "VerdictCandidate",
]
