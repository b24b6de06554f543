"""``micronova proxmox prepare``: user, token, roles and more on clusters of Proxmox VE."""

from __future__ import annotations

import argparse
import contextlib
import getpass
import os
import shlex
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cli.command import Command, argument, flag, one_of
from cli.errors import CommandFailed
from cli.services.doctor import UNFIT, shown
from common import findings

if TYPE_CHECKING:
    from launcher.proxmox import Preparation, Wanted

#: names of ``compute.prepare.wanted.OPTIONAL``
_OPTIONAL = ("passwords", "pings", "steering", "affinity", "zones", "devices")

_NEXT = """
The whole cloud from one command:

  {program} up {proxmox}

Separate services: agents read {configuration}.
"""


FROM_DESCRIPTOR = (
    "File descriptor to read the password from, 0 is standard input: a line for each cluster, or "
    "one for all. Otherwise it is asked for"
)

WANTED = (
    argument(
        "--token",
        metavar="<user@realm!name>",
        default="micronova@pve!agent",
        help="The agents' token (default: %(default)s)",
    ),
    argument(
        "--with",
        dest="purposes",
        action="append",
        default=[],
        choices=_OPTIONAL,
        help="Also grant what is optional: administrators' passwords in guests, health checks by "
        "guests' agents, aborting live migrations and forcing their end, affinity "
        "rules of high availability, interfaces on vnets of your own SDN zones, mapped devices; "
        "may be repeated",
    ),
    argument("--pool", metavar="<pool>", default="", help="A resource pool to make"),
    argument(
        "--storage",
        metavar="<storage=content>",
        dest="storages",
        action="append",
        default=[],
        help="Add types of content to a storage, e.g. local=iso,import; may be repeated. "
        "Where no storage has iso or import, one is chosen",
    ),
    argument(
        "--zone",
        metavar="<zone[=type]>",
        dest="zones",
        action="append",
        default=[],
        help="An SDN zone for networks of projects; with a type it is made, e.g. "
        "tenants=vxlan, or tenants=vlan,bridge=vmbr1; may be repeated",
    ),
    argument(
        "--image",
        metavar="<[file=]URL>",
        dest="images",
        action="append",
        default=[],
        help="An image that the nodes download, e.g. debian-13.qcow2=https://…; may be repeated",
    ),
)
"""What clusters are to have."""


class Prepare(Command):
    """Make user, token, roles and what else is missing on clusters of Proxmox VE.

    It asks for the password of root@pam once, for a ticket that is neither stored nor shown, and
    shows what it is going to make. What exists is left alone, so a second run makes
    nothing. Token, CA and the agents' configuration are written to a folder, and the doctor looks
    at the clusters with the token. With --print, and without a cluster, it prints the commands
    instead, to run as root on a node. The exit code is 0, or 2 if servers can't be built.
    """

    arguments = (
        argument(
            "clusters",
            metavar="<[name=]URL>",
            nargs="*",
            help="A cluster's API, e.g. https://pve1.example.org:8006, or "
            "berlin=https://pve1.example.org:8006; repeat for other nodes of the same name, and "
            "for other clusters. The name never changes (default: proxmox)",
        ),
        argument(
            "--folder",
            metavar="<dir>",
            type=Path,
            help="Where token, CA and compute.conf are written (default: "
            "$XDG_CONFIG_HOME/micronova or ~/.config/micronova)",
        ),
        argument(
            "--owner", metavar="<user>", default="", help="The services' user, who gets the files"
        ),
        argument(
            "--user",
            metavar="<user@realm>",
            default="root@pam",
            help="The administrator who logs in (default: %(default)s)",
        ),
        argument(
            "--password-fd",
            metavar="<n>",
            type=int,
            help=FROM_DESCRIPTOR,
        ),
        one_of(
            argument("--ca", metavar="<file>", help="CA certificates to check the clusters by"),
            argument(
                "--fingerprint",
                metavar="<SHA-256>",
                help="Of the certificate, as Proxmox VE shows it (Node, Certificates): it is "
                "trusted for the log-in, and names the CA. Otherwise it is asked for",
            ),
        ),
        flag("--yes", help="Don't ask before anything is made"),
        flag("--dry-run", help="Show what is missing, and make nothing"),
        flag("--print", help="Print commands for a root shell on a node, and make nothing"),
        flag("--regenerate", help="Give a token that exists another secret, if its file is lost"),
        argument(
            "--pve",
            metavar="<version>",
            help="Version of Proxmox VE, by which optional privileges are named; a cluster says "
            "it itself (default: 9.0)",
        ),
        *WANTED,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Do it."""
        from launcher import proxmox

        given = parsed_args
        asked = wanted(given)
        if not given.clusters:
            if not given.print and _reaches(given):
                raise CommandFailed("Name a cluster, such as https://pve1.example.org:8006.")
            _print(self, proxmox.lines(asked, given.pve or proxmox.NEWEST))
            return
        clusters = prepare(self, given, asked)
        if not clusters:
            return
        lines, found = proxmox.diagnose(clusters[0].folder)
        _print(self, shown(lines, found))
        self.exit_code = findings.exit_code(found) & UNFIT
        if not self.exit_code:
            _print(self, _next(clusters))


def wanted(given: argparse.Namespace) -> Wanted:
    """Return what the options ask for."""
    from launcher import proxmox

    return proxmox.wanted(
        *(given.token, given.purposes, given.zones),
        pool_name=given.pool,
        storages=given.storages,
        images=given.images,
    )


def prepare(command: Command, given: argparse.Namespace, asked: Wanted) -> list[Preparation]:
    """Show what clusters lack, and make it; return them, or none where nothing was to be made."""
    from launcher import proxmox

    folder = proxmox.Folder((given.folder or _folder()).expanduser().absolute(), given.owner)
    places = proxmox.places(given.clusters, given.ca, given.fingerprint)
    clusters = proxmox.prepared(places, folder, asked)
    with contextlib.ExitStack() as stack, _passwords(given, len(clusters)) as passwords:
        for one in clusters:
            stack.callback(one.close)
            one.regenerate = given.regenerate
            _log_in(command, one, given.user, next(passwords))
            one.look()
        if given.print:
            _print(command, [change.line for one in clusters for change in one.changes])
            return []
        _print(command, (line for one in clusters for line in one.shown()))
        if given.dry_run or not _agreed(clusters, given):
            return []
        folder.check()
        for one in clusters:
            for line in one.make():
                command.say(line)
        proxmox.write_configuration(folder, clusters)
    return clusters


def _log_in(command: Command, cluster: Preparation, user: str, password: str) -> None:
    from launcher import proxmox

    def second() -> str:
        return _typed(f"One-time code of {user} at {cluster.name}: ")

    try:
        cluster.root.log_in(user, password, second)
    except proxmox.Untrusted as error:
        fingerprint = cluster.fingerprint()
        command.say(f"{error}\nThe SHA-256 of the certificate is {fingerprint}.")
        if not _is_terminal() or not yes("Is that what its node shows (Node, Certificates)?"):
            raise CommandFailed(
                f"Not trusted: --fingerprint {fingerprint} trusts it, --ca names a CA."
            ) from error
        cluster.trust(fingerprint)
        cluster.root.log_in(user, password, second)


def _agreed(clusters: list[Preparation], given: argparse.Namespace) -> bool:
    """Return whether what was shown is to be made."""
    if given.yes or not any(one.changes for one in clusters):
        return True
    if not _is_terminal():
        raise CommandFailed("Nothing was made: --yes makes it.")
    return yes("Make all of it?")


def _print(command: Command, lines: Iterable[str]) -> None:
    for line in lines:
        command.app.stdout.write(line + "\n")
    command.app.stdout.flush()


def _reaches(given: argparse.Namespace) -> bool:
    """Return whether an option was given that only a cluster gives a meaning."""
    return bool(
        given.dry_run or given.yes or given.images or given.ca or given.fingerprint or given.folder
    )


def _folder() -> Path:
    return Path(os.environ.get("XDG_CONFIG_HOME") or "~/.config") / "micronova"


@contextlib.contextmanager
def _passwords(given: argparse.Namespace, count: int) -> Iterator[Iterator[str]]:
    """Give the password of each cluster; those of a descriptor are read here, and not again."""
    if given.password_fd is None:
        yield (_typed(f"Password of {given.user}: ") for _ in range(count))
        return
    try:
        stream = os.fdopen(given.password_fd, encoding="utf-8", closefd=given.password_fd > 2)
        with stream:
            lines = [line.rstrip("\r\n") for line in stream][:count]
    except (OSError, UnicodeDecodeError) as error:
        raise CommandFailed(f"No password can be read: {error}") from error
    if not lines or "" in lines:
        raise CommandFailed("The password is empty.")
    yield iter([*lines, *[lines[-1]] * (count - len(lines))])


def _typed(question: str) -> str:
    """Ask on the terminal, which doesn't show what is typed."""
    if not _is_terminal():
        raise CommandFailed(
            "There is no terminal to ask at: --password-fd names where the password is read, and "
            "--user an account without a second factor."
        )
    return getpass.getpass(question)


def _is_terminal() -> bool:
    return sys.stdin.isatty()


def yes(question: str) -> bool:
    """Ask a person."""
    return input(f"{question} [y/N] ").strip().lower() in ("y", "yes")


def _next(clusters: list[Preparation]) -> list[str]:
    from cli.services.up import program

    [*_, last] = clusters
    found = last.folder
    words = [w for place in last.places for w in ("--proxmox", place.url)]
    words += ["--proxmox-token-file", str(found.token_file(last.name))]
    if found.ca_file(last.name).exists():
        words += ["--proxmox-ca", str(found.ca_file(last.name))]
    text = _NEXT.format(
        program=program(), proxmox=shlex.join(words), configuration=found.configuration
    )
    return text.splitlines()
