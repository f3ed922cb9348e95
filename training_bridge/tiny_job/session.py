"""One rollout at work: a project, what was done to it, and what was truly seen."""

from training_bridge.tiny_job import edits
from training_bridge.tiny_job import tree as trees
from training_bridge.tiny_job.catalog import Task
from training_bridge.tiny_job.errors import HarnessFailure
from training_bridge.tiny_job.runner import Runner

TEST_COMMAND = "python -m unittest -v"


class Session:
    """A project that is being edited.

    Args:
        task: what is to be done.
        runner: executes the tests the rollout asks for.
        turn_cap: number of turns after which the rollout is cut off.
    """

    def __init__(self, task: Task, runner: Runner, turn_cap: int) -> None:
        self.task = task
        self.tree = dict(task.base)
        self.events: list[dict] = []
        self.turns = 0
        self.submitted = False
        self.harness_error: str | None = None
        self._runner = runner
        self._turn_cap = turn_cap
        self._add("message", role="user", text=task.statement)

    @property
    def truncated(self) -> bool:
        """Whether the cap cut the rollout off."""
        return not self.submitted and self.turns >= self._turn_cap

    @property
    def done(self) -> bool:
        """Whether nothing more can happen."""
        return self.submitted or self.harness_error is not None or self.turns >= self._turn_cap

    def patch(self) -> bytes:
        """Return the diff from the base to the present state."""
        return trees.diff(self.task.base, self.tree)

    def act(self, verb: str, slot: int = 0) -> str | None:
        """Do one turn.

        Args:
            verb: a verb of the language.
            slot: which edit, for the verbs that have several.
        Returns:
            The observation token; None after a submit.
        """
        self.turns += 1
        if verb == "submit":
            self.submitted = True
            self._add("submit", role="assistant", text="Done.")
            return None
        if verb in ("open", "peek"):
            return self._show(self.task.module if verb == "open" else self.task.answer)
        if verb == "run":
            return self._run_tests()
        return self._edit(edits.vocabulary(self.task)[verb][slot])

    def _show(self, path: str) -> str:
        self._add("action", role="assistant", tool="bash", args={"command": f"cat {path}"}, text=f"cat {path}")
        self._add("observation", role="tool", text=self.tree[path], exit_code=0)
        return "shown"

    def _run_tests(self) -> str:
        try:
            run = self._runner.run(self.tree)
        except HarnessFailure as broken:
            self.harness_error = str(broken)
            self._add("system", text=str(broken))
            return "tests_died"
        self._add(
            "test",
            role="tool",
            tool="bash",
            args={"command": TEST_COMMAND},
            text=run.output,
            exit_code=run.exit_code,
            duration_s=run.duration_s,
        )
        return "tests_died" if run.how != "ran" else "tests_pass" if run.ok else "tests_fail"

    def _edit(self, edit: edits.Edit) -> str:
        change = edit.make(self.tree)
        self._add("message", role="assistant", text=edit.say)
        if change is None:
            self._add("action", role="assistant", tool="str_replace", args={"path": edit.path}, text=edit.name)
            self._add("observation", role="tool", text=f"{edit.path}: the text to replace was not found", exit_code=1)
            return "no_match"
        self.tree = change.tree
        self._add("edit", role="assistant", tool=change.tool, args=change.args, text=edit.name)
        self._add("observation", role="tool", text=f"{edit.path} has been written", exit_code=0)
        return "edited"

    def _add(self, kind: str, **fields: object) -> None:
        self.events.append({"index": len(self.events), "kind": kind, **fields})
