"""Rows of several runs, each from a step of its own on, in a form that the database answers from its indexes."""

from collections.abc import Mapping
from functools import reduce
from operator import or_

from django.db.models import Q


def from_steps(first_steps: Mapping[int, int], **narrower) -> Q:
    """The condition on `run` and `step`; `narrower` holds for all. No run: nothing matches."""
    spans = [Q(run=run, step__gte=first, **narrower) for run, first in first_steps.items()]
    return reduce(or_, spans) if spans else Q(pk__in=())
