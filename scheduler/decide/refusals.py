"""The hosts that one filter refused, and why: by host, or by group."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping

from common.messages.scheduling import Refused, RequestSpec
from scheduler.columnar.forms import ColumnarFilter
from scheduler.columnar.reasons import Group, by_text
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.usage import Rows


class Refusals(Mapping[str, str]):
    """Host → reason, of all hosts that one filter refused. Reasons are computed when read."""

    def __init__(
        self,
        columns: HostColumns,
        positions: Rows,
        accept: Callable[[Host, RequestSpec], str | None],
        request: RequestSpec,
        given: dict[int, str],
    ) -> None:
        """``given`` has the reasons, by position, that the filter gave already; it grows."""
        self._columns, self._positions = columns, positions
        self._accept, self._request, self._given = accept, request, given
        self._by_group = accept.by_group if isinstance(accept, ColumnarFilter) else None

    @functools.cached_property
    def _by_name(self) -> Mapping[str, int]:
        positions = self._positions
        return dict(zip(self._columns.names(positions), positions.tolist(), strict=True))

    @property
    def positions(self) -> Rows:
        """The positions of the hosts."""
        return self._positions

    def __len__(self) -> int:
        return len(self._positions)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns.names(self._positions))

    def __getitem__(self, name: str) -> str:
        return self._reason(self._by_name[name])

    def _reason(self, position: int) -> str:
        reason = self._given.get(position)
        if reason is None:
            reason = self._accept(self._columns.host(position), self._request) or ""
            self._given[position] = reason
        return reason

    def groups(self, most: int | None = None, *, first: bool = False) -> list[Group]:
        """Return hosts by reason, for ``most`` reasons; ``first``: for the first ``most`` hosts.

        A filter without reasons by group is asked for no more than ``most`` hosts.
        """
        if self._by_group is not None:
            positions = self._positions[:most] if first else self._positions
            return list(self._by_group(self._columns, self._request, positions, most))
        positions = self._positions[:most]
        return by_text((position, self._reason(position)) for position in positions.tolist())

    def of(self, group: Group, most: int) -> Refused:
        """Return the first ``most`` hosts of a group with their reason, as plain data."""
        return group.refused(self._columns, most)

    def all(self) -> list[Refused]:
        """Return every host with its reason, as plain data."""
        return [group.refused(self._columns) for group in self.groups()]

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Iterate over every host and its reason."""
        if self._by_group is not None:
            return itertools.chain.from_iterable(group.reasons() for group in self.all())
        return (
            (self._columns.name(position), self._reason(position))
            for position in self._positions.tolist()
        )
