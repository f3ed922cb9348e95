"""The process of `bench.grading`: its own database, a scripted endpoint, and one crew. Prints seconds a group."""

import time

import django


def main() -> float:
    """Wall time from the first claim to the last verdict, over the groups: threads overlap, processor time is one's."""
    django.setup()
    from django.conf import settings
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    from bench.grading import GROUPS, ROLLOUTS
    from grading.grader import crew
    from grading.models import Grading
    from grading.states import GroupState, Policy
    from tests.factories import make_group, make_run
    from tests.model_server import ModelServer

    events = [{"kind": "action", "text": "sed -n 1,80p app.py"}, {"kind": "observation", "text": "x = 1\n" * 40}] * 20
    run = make_run(policy=Policy.AUTO, grader="agentic")
    outcomes = "P" * (ROLLOUTS // 2) + "F" * (ROLLOUTS // 2)
    for _ in range(GROUPS + 1):
        make_group(run=run, state=GroupState.COMPLETE, outcomes=outcomes, events=events)
    with ModelServer("good") as server:
        settings.GAGAR_GRADER_URL, settings.GAGAR_GRADER_MODEL = server.url, "openai:scripted"
        from grading.grader import claims, job

        job.grade(claims.next_claim(networked=True))  # the first one imports the client
        start_s = time.perf_counter()
        crew.start()
        crew.wait(300)
        took_s = time.perf_counter() - start_s
    if Grading.objects.filter(state="valid").count() != GROUPS + 1:
        raise RuntimeError(f"gradings ended as {list(Grading.objects.values_list('state', flat=True))}")
    return took_s / GROUPS


if __name__ == "__main__":
    print(main())
