"""``micronova host metrics``: measurements of a host, or of one of its storages."""

from __future__ import annotations

import argparse
from typing import Any

from cli.command import argument
from cli.finding import segment
from cli.server.metrics import PERIOD, Metrics


class ShowHostMetrics(Metrics):
    """Show a host's use of processors, memory, network and root disk in a period.

    With --storage the use of one of its storages. For administrators.
    """

    arguments = (
        argument("host", metavar="<host>", help="Name of the host"),
        PERIOD,
        argument("--storage", metavar="<storage>", help="One of its storages instead"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each metric."""
        query = {"storage": parsed_args.storage} if parsed_args.storage else {}
        path = f"/hosts/{segment(parsed_args.host)}/metrics"
        return self.shown(path, parsed_args, **query)
