"""Rows of grading: runs and tasks, groups and their history, verdicts with evidence, decisions."""

from grading.models.decisions import Decision
from grading.models.groups import GroupEvent, RolloutGroup
from grading.models.people import MachineToken, Membership, Role, Team, User
from grading.models.reviews import ReviewClaim
from grading.models.rubrics import RubricVersion
from grading.models.runs import Life, Run, RunEvent
from grading.models.task_register import Repository, Task, TaskEvent
from grading.models.trajectories import Finding, Signal, Trajectory
from grading.models.verdicts import Evidence, Verdict, VerdictCandidate

__all__ = [
    "Decision",
    "Evidence",
    "Finding",
    "GroupEvent",
    "Life",
    "MachineToken",
    "Membership",
    "Repository",
    "ReviewClaim",
    "Role",
    "RolloutGroup",
    "RubricVersion",
    "Run",
    "RunEvent",
    "Signal",
    "Task",
    "TaskEvent",
    "Team",
    "Trajectory",
    "User",
    "Verdict",
    "VerdictCandidate",
]
