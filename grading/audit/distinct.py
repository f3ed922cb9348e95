"""The audit grader is another one than the grader that trained: the same would measure how well it was obeyed."""

from collections.abc import Iterable

from django.conf import settings

from grading.errors import BadInput
from grading.grader.claims import is_networked
from grading.grader.graders import GRADERS
from grading.grader.options import GradingOptions
from grading.models import Grading, Run, Verdict
from grading.models.audits import PERSON
from grading.states import Method, Purpose

NAME_CHARS = 60


def refuse_online(grader: str, model: str, runs: Iterable[Run]) -> None:
    """Raise BadInput where this grader, or its model, has graded one of the runs, or is set to."""
    if not grader or len(grader) > NAME_CHARS:
        raise BadInput("no name for a grader", got=grader[:80], expected=f"1 to {NAME_CHARS} characters")
    if grader == PERSON:
        return
    asked = model_of(grader, model)
    if is_networked(grader) and not asked:
        raise BadInput("the audit grader has no model", expected="one by name, or GAGAR_GRADER_MODEL")
    for run in runs:
        graders, models = online(run)
        if asked and _bare(asked) in models or not asked and grader in graders:
            name = asked or grader
            raise BadInput(
                f"{name} is the online grader of run {run.name}: it would measure how well its own taste was learned",
                expected="another model, a person, or a program of your own",
            )


def model_of(grader: str, model: str = "") -> str:
    """The model that a grader asks; "" for one without."""
    return (model or settings.GAGAR_GRADER_MODEL) if is_networked(grader) else ""


def online(run: Run) -> tuple[set[str], set[str]]:
    """Names of graders and of models whose verdicts trained this run, or would."""
    graders, models = set(), set()
    if run.method != Method.OUTCOME:
        graders.add(run.grader)
        models.add(_bare(model_of(run.grader, GradingOptions.from_json(run.grading).model)))
    trained = Verdict.objects.filter(group__run=run, purpose=Purpose.TRAINING, parent=None)
    graders |= set(trained.order_by().values_list("grader", flat=True).distinct())
    asked = Grading.objects.filter(group__run=run, verdict__purpose=Purpose.TRAINING)
    models |= {_bare(model) for model in asked.order_by().values_list("model", flat=True).distinct()}
    return graders, models - {""}


def _bare(model: str) -> str:
    """A model's name without its vendor: `openai:m-1` through a gateway is the model that `m-1` is elsewhere."""
    return model.rpartition(":")[2].rpartition("/")[2].casefold()


def is_ours(grader: str) -> bool:
    """Whether a worker of this server grades, rather than a person or a program of the team's own."""
    return grader in GRADERS
