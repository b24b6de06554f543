"""``micronova proxmox prepare``: the commands that make user, token and roles on a cluster."""

from __future__ import annotations

import argparse

from cli.command import Command, argument

#: names of ``compute.prepare.OPTIONAL``
_OPTIONAL = ("passwords", "steering", "affinity", "zones", "devices")


class Prepare(Command):
    """Print the commands that make user, token and roles on a Proxmox VE cluster.

    Run them once, as root on one of its nodes. A role that exists gets what it lacks. Later
    ``micronova doctor`` names what the token lacks.
    """

    arguments = (
        argument(
            "--token",
            metavar="<user@realm!name>",
            default="micronova@pve!agent",
            help="The agents' token (default: %(default)s)",
        ),
        argument(
            "--pve",
            metavar="<version>",
            help="Version of Proxmox VE, by which optional privileges are named (default: 9.0)",
        ),
        argument(
            "--with",
            dest="purposes",
            action="append",
            default=[],
            choices=_OPTIONAL,
            help="Also grant what is optional: administrators' passwords in guests, aborting live "
            "migrations and forcing their end, affinity rules of high availability, "
            "interfaces on vnets of your own SDN zones, mapped devices; may be repeated",
        ),
        argument(
            "--zone",
            metavar="<zone>",
            dest="zones",
            action="append",
            default=[],
            help="An SDN zone for networks of projects; may be repeated",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print them."""
        from launcher import proxmox

        for line in proxmox.lines(
            parsed_args.token,
            parsed_args.pve or proxmox.NEWEST,
            parsed_args.purposes,
            parsed_args.zones,
        ):
            self.app.stdout.write(line + "\n")
