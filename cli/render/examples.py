"""An example or more of each command, for its help and the reference; a test parses them."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from types import MappingProxyType

from cliff import _argparse

_HEAD = "examples:"

#: the command → what follows its name
EXAMPLES: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "audit": ("", "--last --long"),
        "backup": ("/var/backups/micronova",),
        "bus users": ("--worker agent1",),
        "capacity": ("--flavor m1.small", "--flavor m1.small --without pve2", "--waiting"),
        "complete": ("", "--shell fish"),
        "config show": ("", "--all"),
        "db check": ("", "--database cloud"),
        "db contract": ("",),
        "db expand": ("", "--database cloud"),
        "db upgrade": ("",),
        "doctor": ("", "--fix-lines"),
        "explain": ("web1", "req-1b1dd5a8-0e0c-4d5a-9d2e-6a1f0d6c2f11", "web1 --html web1.html"),
        "files": ("/root/micronova",),
        "group create": (
            "web --count 3 --flavor m1.small --image debian-12 --network private --wait",
            "web --count 3 --max 10 --profile web --option wait_seconds=3600",
        ),
        "group delete": ("web --wait", "web --keep"),
        "group explain": ("web",),
        "group list": ("",),
        "group quota": ("", "--project demo --set 20"),
        "group recover": ("web --wait",),
        "group replace": ("web --image debian-13 --flavor m1.small --wait", "web --pause"),
        "group scale": ("web 5 --wait", "web +2"),
        "group show": ("web",),
        "group update": ("web --max 20 --option at_once=2", "web --option health_tcp_port=80"),
        "help": ("", "server list"),
        "host metrics": ("pve1", "pve1 --period week", "pve1 --storage local-lvm --period year"),
        "image publish": ("debian-12 --to north --to south",),
        "keypair create": ("laptop", "laptop --public-key ~/.ssh/id_ed25519.pub"),
        "keypair publish": ("laptop --to north",),
        "metrics": ("", "--output /var/lib/prometheus/node-exporter/micronova.prom"),
        "node disable": ("pve1 --reason 'new memory'",),
        "node drain": (
            "pve1 --dry-run",
            "pve1 --live-only --wait",
            "pve1 --wait-for-room 3600",
            "pve1 --status",
        ),
        "node enable": ("pve1",),
        "node list": ("",),
        "orphan list": ("",),
        "orphan reap": ("17 --yes",),
        "proxmox prepare": ("main=https://pve1:8006 --dry-run",),
        "queue list": ("--host pve1", "--waiting"),
        "quickstart": ("main=https://pve1:8006", "--remove"),
        "quota spread": ("demo --total cores=100",),
        "rebalance": ("", "--apply --limit 5 --wait"),
        "restore": ("--from /var/backups/micronova",),
        "schedule": (
            "--dry-run --flavor m1.small --image debian-12",
            "--dry-run --flavor m1.small --image debian-12 --count 10 --why",
        ),
        "server adopt": ("--cluster main --vmid 105 --project demo --flavor m1.small",),
        "server create": (
            "web1 --flavor m1.small --image debian-12 --key-name laptop --wait",
            "db1 --flavor m1.large --image debian-12 --boot-from-volume 50 --network private",
        ),
        "server delete": ("web1 web2 --wait",),
        "server event list": ("web1", "web1 --long"),
        "server event show": ("web1 req-1b1dd5a8-0e0c-4d5a-9d2e-6a1f0d6c2f11",),
        "server forget": ("web1 --reason 'removed by hand'",),
        "server hold": ("web1",),
        "server list": ("", "--status ERROR --all-projects", "--watch"),
        "server mark": ("web1",),
        "server metrics": ("web1", "web1 --period week", "web1 --watch"),
        "server reboot": ("web1 --wait", "web1 --hard"),
        "server release": ("web1 --wait",),
        "server release-hold": ("web1",),
        "server retry": ("web1",),
        "server show": ("web1", "web1 --watch"),
        "server start": ("web1 web2 --wait",),
        "server stop": ("web1 --wait",),
        "service": ("conductor --config-file /etc/micronova/micronova.conf",),
        "status upgrade-check": ("", "--json"),
        "up": ("", "--state-dir ~/cloud --nodes 5 --port 8780"),
        "vmid list": ("", "--state quarantined --cluster main"),
    }
)


def lines(name: str) -> tuple[str, ...]:
    """Return the lines to type for a command; none for a command that isn't ours."""
    return tuple(f"micronova {name} {rest}".rstrip() for rest in EXAMPLES.get(name, ()))


def with_examples(parser: argparse.ArgumentParser, prog_name: str) -> argparse.ArgumentParser:
    """Give a command's parser its examples, below the options; return it."""
    name = " ".join(prog_name.split()[1:]).removeprefix("micronova ")
    shown = lines(name)
    if shown:
        parser.epilog = "\n".join([_HEAD, *(f"  {one}" for one in shown)])
        parser.formatter_class = _Formatter
    return parser


class _Formatter(_argparse.SmartHelpFormatter):
    """Prints examples in lines of their own."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:
        if text.startswith(_HEAD):
            return text
        return super()._fill_text(text, width, indent)
