"""Options that say where a server is placed: hints, group, zone, host."""

from __future__ import annotations

import argparse
from typing import Any

from cli.cloud import Cloud
from cli.command import Pairs, argument, given


class Hints(Pairs):
    """``key=value``, repeated; a key that is repeated has a list."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        before = getattr(namespace, self.dest) or {}
        super().__call__(parser, namespace, values, option_string)
        key = str(values).partition("=")[0]
        if key in before:
            hints = getattr(namespace, self.dest)
            earlier = before[key] if isinstance(before[key], list) else [before[key]]
            hints[key] = [*earlier, hints[key]]


WHERE = (
    argument(
        "--hint",
        metavar="<key=value>",
        action=Hints,
        dest="hints",
        help="Hint for the scheduler (repeat)",
    ),
    argument("--server-group", metavar="<server-group>", help="Server group (name or ID)"),
    argument("--availability-zone", metavar="<zone-name>", help="Zone, or zone:host (admin)"),
    argument("--host", metavar="<host>", help="Host (admin only)"),
    argument("--hypervisor-hostname", metavar="<name>", help="Hypervisor (admin only)"),
)


def where(cloud: Cloud, parsed_args: argparse.Namespace) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the options of ``WHERE``: the server's attributes, and the hints."""
    hints = dict(parsed_args.hints or {})
    if parsed_args.server_group:
        group = cloud.find("server_group", parsed_args.server_group)
        hints["group"] = group.id
    return given(parsed_args, "availability_zone", "host", "hypervisor_hostname"), hints
