"""``micronova quickstart``: a cloud on this machine, on PostgreSQL and RabbitMQ."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING

from cli.command import Command, argument, flag, one_of
from cli.errors import CommandFailed
from cli.services import proxmox as preparing
from cli.services.doctor import UNFIT, shown
from cli.services.up import port
from common import findings
from common.counting import counted

if TYPE_CHECKING:
    from launcher.quickstart.machine import Machine
    from launcher.quickstart.memory import Memory

_READY = """
The cloud is up: {url}/compute/v2.1, dashboard {dashboard}. To use it:

  export OS_CLIENT_CONFIG_FILE={clouds} OS_CLOUD=micronova
  openstack image list
  openstack server create --flavor m1.small --image IMAGE --network vmbr0 --wait web-1
"""
_BY_HAND = """
Neither systemd nor supervisord runs here. Start these, and then the same command again, which
looks whether all is well:
"""


class Quickstart(Command):
    """Make a cloud of separate services on this machine, start it, and look at it.

    PostgreSQL and RabbitMQ run here already, or are named. It makes databases, users, passwords,
    a certificate, configuration and units; Keystone comes along. A second run makes what is
    missing, and starts again what has changed. --remove undoes all of it but what is on the
    Proxmox VE clusters. For both, what isn't named of user, folder of what services write, port
    and RabbitMQ is as it was. Run it as root. The exit code is 0, or 2 if servers can't be built.
    """

    arguments = (
        argument(
            "clusters",
            metavar="<[name=]URL>",
            nargs="*",
            help="Proxmox VE clusters to prepare, as `micronova proxmox prepare` does; asked for "
            "where the folder has no compute.conf yet",
        ),
        flag("--remove", help="Remove what was made here, its servers' record included"),
        flag("--yes", help="Don't ask before anything is made or removed"),
        argument(
            "--postgres",
            metavar="<URL>",
            default="",
            help="PostgreSQL's superuser, e.g. postgresql://postgres:…@db (default: the server of "
            "this machine, by its user postgres; Env: MICRONOVA_POSTGRES)",
        ),
        argument(
            "--rabbitmq",
            metavar="<URL>",
            default="",
            help="A user of RabbitMQ, e.g. rabbit://user:…@mq:5672/ (default: one is made in the "
            "server of this machine; Env: MICRONOVA_RABBITMQ)",
        ),
        argument("--user", metavar="<user>", help="The services' user (default: micronova)"),
        argument(
            "--folder",
            metavar="<dir>",
            type=Path,
            default=Path("/etc/micronova"),
            help="Of the configuration (default: /etc/micronova)",
        ),
        argument(
            "--state-dir",
            metavar="<dir>",
            type=Path,
            help="Of what services write (default: /var/lib/micronova)",
        ),
        argument(
            "--port",
            metavar="<port>",
            type=port,
            help="Port of the APIs; identity, consoles, placement and the dashboard have the "
            "first, second, fourth and sixth after it (default: 8774)",
        ),
        argument(
            "--services",
            choices=("systemd", "supervisord", "none"),
            help="Who starts the services (default: who is there)",
        ),
        argument("--password-fd", metavar="<n>", type=int, help=preparing.FROM_DESCRIPTOR),
        one_of(
            argument("--ca", metavar="<file>", help="CA certificates to check the clusters by"),
            argument("--fingerprint", metavar="<SHA-256>", help="Of the cluster's certificate"),
        ),
        *preparing.WANTED,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Do it."""
        from launcher.quickstart import processes, steps

        machine = _machine(parsed_args)
        manager = parsed_args.services or processes.kind()
        processes.check(machine, manager)
        memory = steps.check(machine)
        if parsed_args.remove:
            self._remove(memory, manager, parsed_args)
            return
        clusters = self._clusters(machine, parsed_args)
        for line in steps.plan(memory, manager):
            self.app.stdout.write(f"  {line}\n")
        self.app.stdout.flush()
        self._agree(parsed_args, "Make all of it?", "made")
        machine.make_folders()
        if clusters and not self._prepare(machine, clusters, parsed_args):
            raise CommandFailed("Nothing was made here: the clusters are not prepared.")
        again = bool(memory.made)
        lines = steps.make(memory, manager, self.say)
        if lines and not again:
            self.app.stdout.write("\n".join([_BY_HAND, *lines, ""]))
            return
        self._look(machine)

    def _look(self, machine: Machine) -> None:
        from launcher.quickstart import steps

        steps.wait(machine)
        seen, found = steps.diagnose(machine)
        for line in shown(seen, found):
            self.app.stdout.write(line + "\n")
        self.exit_code = findings.exit_code(found) & UNFIT
        if not self.exit_code:
            ports = machine.ports
            self.app.stdout.write(
                _READY.format(
                    url=machine.url(ports.public),
                    dashboard=machine.url(ports.dashboard),
                    clouds=quote(str(machine.state / "identity" / "clouds.yaml")),
                )
            )

    def _clusters(self, machine: Machine, given: argparse.Namespace) -> list[str]:
        """Return the clusters to prepare, asked for where none is known."""
        if given.clusters or (machine.folder / "compute.conf").exists():
            return list(given.clusters)
        if not sys.stdin.isatty():
            raise CommandFailed(
                "Name a Proxmox VE cluster, such as https://pve1.example.org:8006."
            )
        url = input("URL of a Proxmox VE node [https://pve1.example.org:8006]: ").strip()
        if not url:
            raise CommandFailed("Nothing was made: there is no cluster.")
        return [url]

    def _prepare(self, machine: Machine, clusters: list[str], given: argparse.Namespace) -> bool:
        made = argparse.Namespace(**vars(given))
        made.clusters, made.folder, made.owner = clusters, machine.folder, machine.user
        made.user, made.regenerate, made.dry_run, made.print = "root@pam", False, False, False
        return bool(preparing.prepare(self, made, preparing.wanted(made)))

    def _agree(self, given: argparse.Namespace, question: str, done: str) -> None:
        if given.yes:
            return
        if not sys.stdin.isatty():
            raise CommandFailed(f"Nothing was {done}: --yes does it.")
        if not preparing.yes(question):
            raise CommandFailed(f"Nothing was {done}.")

    def _remove(self, memory: Memory, manager: str, given: argparse.Namespace) -> None:
        from launcher.quickstart import databases, steps

        if not memory.made:
            self.say("Nothing was made here.")
            return
        count = databases.servers(memory)
        if count:
            found = counted(count, "server is", "servers are")
            self.say(f"{found} in the database: VMs are not removed from their nodes.")
        self._agree(given, "Remove the cloud of this machine?", "removed")
        steps.remove(memory, manager, self.say)


def _machine(given: argparse.Namespace) -> Machine:
    from launcher.quickstart import place
    from launcher.quickstart.machine import Ports

    return place.machine(
        given.folder.expanduser().absolute(),
        None if given.state_dir is None else given.state_dir.expanduser().absolute(),
        given.user,
        None if given.port is None else Ports.at(given.port),
        given.postgres or os.environ.get("MICRONOVA_POSTGRES", ""),
        given.rabbitmq or os.environ.get("MICRONOVA_RABBITMQ", ""),
    )
