"""``micronova server metrics`` and ``micronova host metrics``: what was measured, with graphs."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from cliff.columns import FormattableColumn

from cli.audits import answer
from cli.command import Lister, argument
from cli.watch import Watched
from common.story.amounts import amount, last, mean, peak, sparkline

PERIODS = ("hour", "day", "week", "month", "year")
#: characters of a graph
WIDTH = 40
_HEADERS = ("Metric", "Last", "Mean", "Peak", "Graph")
_PERIOD = argument(
    "--period",
    metavar="<period>",
    choices=PERIODS,
    default="hour",
    help="hour, day, week, month or year (default: hour)",
)


class Amount(FormattableColumn[Any]):
    """A value and its unit."""

    def human_readable(self) -> str:
        """Return the value with its unit."""
        return amount(*self._value)

    def machine_readable(self) -> Any:
        """Return the value."""
        return self._value[0]


class Graph(FormattableColumn[Any]):
    """The values of a period."""

    def human_readable(self) -> str:
        """Return a graph of one line."""
        return sparkline(self._value["values"], WIDTH)

    def machine_readable(self) -> Any:
        """Return unit, times and values."""
        return self._value


class _Metrics(Watched, Lister):
    watch_seconds = 60.0

    def _shown(self, path: str, parsed_args: argparse.Namespace, **query: str) -> Any:
        asked = {"period": parsed_args.period, **query}
        return _HEADERS, rows(answer(self.cloud.compute.get(path, params=asked))["metrics"])


class ShowServerMetrics(_Metrics):
    """Show a server's use of processors, memory, network and disks in a period.

    A line of the graph begins with the period; blanks are times of which nothing is known, as
    while the server was off. Proxmox VE measures, and is asked once a minute at most. With
    ``-f json`` the graph is all values with their times.
    """

    arguments = (argument("server", metavar="<server>", help="Server (name or ID)"), _PERIOD)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each metric."""
        server = self.cloud.find("server", parsed_args.server)
        return self._shown(f"/servers/{server.id}/metrics", parsed_args)


class ShowHostMetrics(_Metrics):
    """Show a host's use of processors, memory, network and root disk in a period.

    With --storage the use of one of its storages. For administrators.
    """

    arguments = (
        argument("host", metavar="<host>", help="Name of the host"),
        _PERIOD,
        argument("--storage", metavar="<storage>", help="One of its storages instead"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each metric."""
        query = {"storage": parsed_args.storage} if parsed_args.storage else {}
        path = f"/hosts/{quote(parsed_args.host, safe='')}/metrics"
        return self._shown(path, parsed_args, **query)


def rows(metrics: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a row for each series of an answer."""
    return [_row(one, metrics["times"]) for one in metrics["series"]]


def _row(series: Mapping[str, Any], times: Sequence[str]) -> tuple[Any, ...]:
    values, unit = series["values"], series["unit"]
    graph = {"unit": unit, "times": times, "values": values}
    numbers = (of(values) for of in (last, mean, peak))
    return (series["name"], *(Amount((one, unit)) for one in numbers), Graph(graph))
