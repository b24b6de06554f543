"""Asks the conductors' ledger whether jobs may go on, where going on can't be taken back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from common.context import internal
from common.errors import MicronovaError
from common.log import logger
from common.messages.reports import Working
from common.rpc import events
from common.rpc.events import ConductorEvents
from common.rpc.gathering import Combining
from compute.commands.job import MayStart
from compute.worker.tenure import Tenure

if TYPE_CHECKING:
    from common.rpc.messaging import oslo_messaging

LOG = logger(__name__)

#: starts of VMs that one call asks for
MOST_TOGETHER = 100


class Permission:
    """Implements ``commands.job.Ledger``; threads may share it."""

    def __init__(self, transport: oslo_messaging.Transport, tenure: Tenure) -> None:
        # What is asked of a conductor that stands still may be asked of another one.
        self._conductor = events.to_conductor(transport, repeats=True)
        self._tenure = tenure
        self._starts = Combining[tuple[str, Working], MayStart](self._ask_together, MOST_TOGETHER)

    def accepts(self, worker: str) -> bool:
        """Return whether a command to this address is this worker's to carry out."""
        return self._tenure.accepts(worker)

    def is_over(self, worker: str) -> bool:
        """Return whether the worker's tenure has ended."""
        return self._tenure.is_over(worker)

    def may_undo(self, worker: str, working: Working) -> bool:
        """Return whether a conductor confirms that the worker still has the operation's lease.

        False if none answers: the worker that takes the operation over undoes or finishes it.
        """
        try:
            return self._conductor.call(
                internal(), ConductorEvents.may_undo, worker=worker, working=working
            )
        except MicronovaError as error:
            LOG.warning(
                "Operation %d is not undone: no conductor answered: %s",
                *(working.operation_id, error.message),
            )
            return False

    def may_start(self, worker: str, working: Working) -> MayStart | None:
        """Return whether a conductor has written that the VM may run; None if none answers.

        What several jobs ask at once is one call.
        """
        try:
            return self._starts.do((worker, working), worker)
        except MicronovaError as error:
            LOG.warning(
                "The VM of operation %d is not started yet: no conductor answered: %s",
                *(working.operation_id, error.message),
            )
            return None

    def _ask_together(self, asked: Sequence[tuple[str, Working]]) -> list[MayStart]:
        [worker, *_], working = zip(*asked, strict=True)
        may = self._conductor.call(
            internal(), ConductorEvents.may_start, worker=worker, working=list(working)
        )
        answers = dict.fromkeys(may, MayStart.YES)
        answers |= {one: MayStart.LOST for one in may if one.lost}
        return [answers.get(one) or answers.get(one.as_lost(), MayStart.NO) for one in working]
