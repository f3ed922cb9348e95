"""The tokens of the policy, and what may follow what."""

from dataclasses import dataclass

from training_bridge.tiny_job import edits
from training_bridge.tiny_job.catalog import Task

PAD = 0
BARE_VERBS = ("open", "run", "peek", "paste", "rewrite", "submit")
SLOT_VERBS = ("patch", "tidy", "tamper")
OBSERVATIONS = ("shown", "edited", "no_match", "tests_pass", "tests_fail", "tests_died")


@dataclass(frozen=True)
class Language:
    """Token ids. A sequence is: task, then per turn a verb, for some verbs a slot, and an observation.

    Args:
        tokens: every token's text; the index is its id.
        slots: number of edits by (task key, verb).
    """

    tokens: tuple[str, ...]
    slots: dict[tuple[str, str], int]
    ids: dict[str, int]

    @classmethod
    def of(cls, tasks: dict[str, Task]) -> "Language":
        """Build the language of some tasks."""
        slots = {(task.key, verb): len(edits.vocabulary(task)[verb]) for task in tasks.values() for verb in SLOT_VERBS}
        names = [f"slot {number}" for number in range(max(slots.values()))]
        tokens = ("<pad>", *(f"task {key}" for key in tasks), *BARE_VERBS, *SLOT_VERBS, *names, *OBSERVATIONS)
        return cls(tokens, slots, {token: number for number, token in enumerate(tokens)})

    def prompt(self, task: Task) -> int:
        """Return the token that stands for a task's statement."""
        return self.ids[f"task {task.key}"]

    def is_response(self, token: int) -> bool:
        """Return whether the model writes this token (a verb or a slot)."""
        text = self.tokens[token]
        return text in BARE_VERBS or text in SLOT_VERBS or text.startswith("slot ")

    def contexts(self) -> list[tuple[str, str | None]]:
        """Return every situation the model writes in: (task key, the verb that waits for its slot)."""
        keys = sorted({key for key, _ in self.slots})
        return [(key, verb) for key in keys for verb in (None, *SLOT_VERBS)]

    def allowed(self, context: tuple[str, str | None]) -> list[int]:
        """Return the ids the model may write in a situation."""
        key, verb = context
        if verb is None:
            return [self.ids[name] for name in (*BARE_VERBS, *SLOT_VERBS)]
        return [self.ids[f"slot {number}"] for number in range(self.slots[key, verb])]
