"""The heartbeat of one audit grading: keeps the claim on its group, and tells the grader to stop when it is lost."""

import logging

from django.db import DatabaseError, connections

from grading.errors import LeaseLost
from grading.grader.keeper import Keeper
from grading.models import AuditGroup

log = logging.getLogger(__name__)


class AuditKeeper(Keeper):
    """`with AuditKeeper(group, wall_s=600) as keeper`; the grader watches `keeper.cancelled`."""

    def __init__(self, group: AuditGroup, *, wall_s: float):
        super().__init__(group, wall_s=wall_s)
        self.group, self.fencing = group, group.fencing

    def __enter__(self) -> "AuditKeeper":
        self._thread.start()
        return self

    def __exit__(self, *failure) -> None:
        self._done.set()
        self._thread.join(5)

    def _beat(self, elapsed_s: float) -> None:
        try:
            self.group.keep_claim(fencing=self.fencing, lease_s=self.lease_s)
        except LeaseLost as lost:
            self.cancel(str(lost))
        except DatabaseError:
            log.warning("the claim on %s could not be renewed", self.group, exc_info=True)
        finally:
            connections.close_all()
