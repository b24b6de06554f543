"""Ends operations that their agents have carried out: those that come at once, together."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from common.errors import MicronovaError
from common.log import logger
from common.messages.reports import Report
from common.rpc.gathering import Gathering
from conductor.engine.batch_close import Ended, Ending
from conductor.engine.runner import Runner
from conductor.store.ledger import operations as ledger
from conductor.store.transactions import Store, Transaction

LOG = logger(__name__)

#: operations that end in one transaction: its locks must not keep other writers waiting
MOST = 20


@dataclass(frozen=True)
class EndReport:
    """A report whose outcome ends its operation."""

    report: Report
    ended: Ended[Any]


class Outcomes:
    """Writes ends with what else the agents report of them.

    Where that fails each is kept, and its flow sees to it: what has become of one of them stops no
    other.
    """

    def __init__(self, store: Store, runner: Runner, endings: Mapping[str, Ending[Any]]) -> None:
        self._store, self._runner = store, runner
        self._endings = endings
        self._by_action = {
            action: Gathering[EndReport](functools.partial(self._end, ending), MOST)
            for action, ending in endings.items()
        }

    def ends(self, ended: Ended[Any]) -> bool:
        """Return whether ``take`` handles this outcome."""
        ending = self._endings.get(ended.task.operation.action)
        return ending is not None and ending.of(ended)

    def take(self, found: Sequence[EndReport]) -> None:
        """End the operations; in another thread where resources are released first."""
        by_action: dict[str, list[EndReport]] = {}
        for one in found:
            by_action.setdefault(one.ended.task.operation.action, []).append(one)
        for action, mine in by_action.items():
            gathering = self._by_action[action]
            if not gathering.add(mine):
                continue
            if self._endings[action].release is None:
                gathering.drain()
            else:
                self._runner.end(mine[0].ended.task.operation, gathering.drain)

    def _end(self, ending: Ending[Any], found: Sequence[EndReport]) -> None:
        ended = [one.ended for one in found]

        def work(connection: Transaction) -> None:
            ledger.record_steps(connection, [one.report for one in found])
            ending.write(connection, ended)

        try:
            if ending.release is not None:
                ending.release(ended)
            self._store.run(work)
        except MicronovaError as error:
            LOG.info("%d operations could not be ended together: %s", len(found), error.message)
            self._one_by_one(found)
            return
        for one in ended:
            operation = one.task.operation
            operation.ctxt.update_store()
            LOG.info("Operation %d, %s, is done.", operation.id, operation.action)

    def _one_by_one(self, found: Sequence[EndReport]) -> None:
        self._store.run(lambda c: ledger.record_steps(c, [one.report for one in found]))
        for one in found:
            self._runner.finished(one.ended.task.operation, one.ended.outcome)
