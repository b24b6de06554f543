"""The scenarios: what exists before a run, what the run is about, and when it is over."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa

from common.errors import MicronovaError
from db import schema
from tests.chaos.dressing import image_name
from tests.chaos.stage import Stage

#: those whose builds are the first of their image
FIRST = "first build"
BUILD, PAIR, DESTROY = "build", "build of two", "destroy"
GROUP, DRAIN, WAITING, SCALE = "group", "drain", "waiting", "scaling group"
TENDED = "tended group"
#: servers of one request
COUNTS = {PAIR: 2}

ENDS = {"active", "error", "deleted"}
_WORST_FIRST = ("building", "error", "active", "stopped", "deleted")


class Play:
    """One run of a scenario."""

    def __init__(self, stage: Stage, scenario: str, number: int, image: int) -> None:
        self.stage, self.scenario = stage, scenario
        self.name = f"server-{number}"
        self.count = COUNTS.get(scenario, 1)
        self.image = image_name(image)
        self.good = "deleted" if scenario == DESTROY else "active"
        """What it ends as if nothing fails."""

    def prepare(self) -> None:
        """What must be there before the run."""
        if self.scenario == DESTROY:
            self.stage.create(self.name, self.image)
            self.stage.until(lambda: self.state() == "active")

    def act(self) -> None:
        """What the run is about."""
        if self.scenario == DESTROY:
            for row in self.rows():
                self.stage.act(row.uuid, "delete")
        else:
            self.stage.create(self.name, self.image, count=self.count)

    def rows(self) -> list[Any]:
        """The servers' rows, if they were made."""
        batch = [f"{self.name}-{number + 1}" for number in range(self.count)]
        names = batch if self.count > 1 else [self.name]
        rows = self.stage.rows(sa.select(schema.servers).where(schema.servers.c.name.in_(names)))
        assert len(rows) in (0, self.count), f"{len(rows)} of {self.count} were made"
        return rows

    def state(self) -> str:
        """Their vm_state, the worst of them; empty while they weren't made."""
        return worst(self.rows())

    def settled(self) -> str:
        """What it ends as, within the bound; "none" if the request was lost altogether."""
        if not self.state() and not self._request_arrived():
            return "none"

        def ended() -> str:
            rows = self.rows()  # once: between two looks a destroy may end
            state = worst(rows)
            if self.scenario == DESTROY and state == "active" and not deleting(rows):
                # The request for the delete was lost, as its sender knows.
                self.stage.settle()
                rows = self.rows()
                return "active" if worst(rows) == "active" and not deleting(rows) else ""
            busy = self.scenario == DESTROY and deleting(rows)
            return state if state in ENDS and not busy else ""

        return str(self.stage.until(ended))

    def kept(self) -> str:
        """What is wrong while the servers stand, or nothing."""
        return ""

    def _request_arrived(self) -> bool:
        """Whether the request has come through, late as it may be."""
        self.stage.settle()

        def answers() -> bool:
            with contextlib.suppress(MicronovaError):
                self.stage.client.ping(self.stage.context())
                return True
            return False

        self.stage.until(answers)
        return bool(self.state())


def worst(rows: Sequence[Any]) -> str:
    """The vm_state of servers, or the worst of them; empty for none."""
    states = {str(row.vm_state) for row in rows}
    return next((one for one in _WORST_FIRST if one in states), "")


def deleting(rows: Sequence[Any]) -> bool:
    """Whether a delete is under way."""
    return any(row.task_state == "deleting" for row in rows)
