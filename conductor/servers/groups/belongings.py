"""Volumes or ports that belong to a place of a group: its next server gets those of the last one.

A place that lacks some gets new ones with its next server, recorded in the same transaction.
"""

from __future__ import annotations

import abc
from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Any, ClassVar

from common.context import RequestContext
from common.resources.groups import Keep
from conductor.cloud import Cloud
from conductor.rpc.servers.servers import CreateServers
from conductor.store.groups.groups import Member
from conductor.store.networks.pools import ANYWHERE, Within
from conductor.store.transactions import Transaction


class Belongings(abc.ABC):
    """The volumes, or the ports, of one place: their rows are locked, in one transaction."""

    keep: ClassVar[Keep]

    def __init__(
        self,
        connection: Transaction,
        cloud: Cloud,
        ctxt: RequestContext,
        member: Member,
        within: Within = ANYWHERE,
    ) -> None:
        self.connection, self.cloud, self.ctxt = connection, cloud, ctxt
        self.member, self.within = member, within
        self.had: Sequence[str] = member.kept.get(self.keep, ())
        self.there: dict[str, Any] = {str(row.id): row for row in self._locked()}
        """ID → row, of those of ``had`` that still exist and are still the project's."""

    @abc.abstractmethod
    def request(self, asked: CreateServers) -> CreateServers:
        """Return the request for the place's next server: it names what the place has, and asks
        for new ones in place of what is missing."""

    def recorded(self, server_uuid: str) -> list[str]:
        """Return the IDs that belong to the place, once its new server is written."""
        return retained(self._of(server_uuid), self.had, self.there)

    def delete(self) -> None:
        """Begin to delete them, as the place is given up; what a server still uses is left."""
        for row in self.there.values():
            self._delete(row)

    def name(self, number: int) -> str:
        """Return the name of a new one, by its number in the place."""
        return f"{self.member.name}-{self.keep.noun}-{number}"[-255:]

    @abc.abstractmethod
    def _locked(self) -> Iterable[Any]:
        """Return their rows, locked, in the order of their IDs."""

    @abc.abstractmethod
    def _of(self, server_uuid: str) -> Sequence[str]:
        """Return those that the new server has, in the order of its request."""

    @abc.abstractmethod
    def _delete(self, row: Any) -> None: ...


def paired(
    count: int, had: Sequence[str], fits: Callable[[int, int], bool]
) -> Sequence[str | None]:
    """Return for each of ``count`` requested ones which of ``had`` it gets; None: a new one.

    ``fits(i, j)``: whether number i of the request may be number j of ``had``. The same number
    is preferred. Pure.
    """
    found: dict[int, int] = {}
    for same in (True, False):
        for wanted in [one for one in range(count) if one not in found]:
            positions = (wanted,) if same else range(len(had))
            left = (one for one in positions if one < len(had) and one not in found.values())
            place = next((one for one in left if fits(wanted, one)), None)
            if place is not None:
                found[wanted] = place
    return [had[found[one]] if one in found else None for one in range(count)]


def retained(mine: Sequence[str], had: Sequence[str], there: Collection[str]) -> list[str]:
    """Return what belongs to a place with its new server. Pure.

    That is what the server has (``mine``), and what a server of a former profile had for which
    the present profile has no use.
    """
    rest = [
        one
        for position, one in enumerate(had)
        if one not in mine and (position >= len(mine) or one in there)
    ]
    return [*mine, *rest]
