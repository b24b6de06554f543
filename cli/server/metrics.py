"""``micronova server metrics``, and how measurements are shown anywhere."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from typing import Any

from cliff.columns import FormattableColumn

from cli.audits import answer
from cli.command import Lister, argument
from cli.watch import Watched
from common.story.amounts import amount, last, mean, peak, sparkline

_PERIODS = ("hour", "day", "week", "month", "year")
#: characters of a graph
WIDTH = 40
_HEADERS = ("Metric", "Last", "Mean", "Peak", "Graph")
PERIOD = argument(
    "--period",
    metavar="<period>",
    choices=_PERIODS,
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


class Metrics(Watched, Lister):
    """A table of the measurements of a period."""

    watch_seconds = 60.0

    def shown(self, path: str, parsed_args: argparse.Namespace, **query: str) -> Any:
        """Return a row for each metric that a path answers with."""
        asked = {"period": parsed_args.period, **query}
        return _HEADERS, rows(answer(self.cloud.compute.get(path, params=asked))["metrics"])


class ShowServerMetrics(Metrics):
    """Show a server's use of processors, memory, network and disks in a period.

    A graph begins with the period; a blank is a time without measurements, as while the server
    was off. Proxmox VE measures, and is asked once a minute at most. With
    ``-f json`` the graph is all values with their times.
    """

    arguments = (argument("server", metavar="<server>", help="Server (name or ID)"), PERIOD)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each metric."""
        server = self.cloud.find("server", parsed_args.server)
        return self.shown(f"/servers/{server.id}/metrics", parsed_args)


def rows(metrics: Mapping[str, Any]) -> list[tuple[Any, ...]]:
    """Return a row for each series of an answer."""
    return [_row(one, metrics["times"]) for one in metrics["series"]]


def _row(series: Mapping[str, Any], times: Sequence[str]) -> tuple[Any, ...]:
    values, unit = series["values"], series["unit"]
    graph = {"unit": unit, "times": times, "values": values}
    numbers = (of(values) for of in (last, mean, peak))
    return (series["name"], *(Amount((one, unit)) for one in numbers), Graph(graph))
