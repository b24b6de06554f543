"""``micronova up``: the whole cloud from one command, in the foreground."""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from cli.command import Command, argument, flag
from cli.errors import CommandFailed
from cli.services.progress import for_terminal

if TYPE_CHECKING:
    from launcher.embedded.settings import JoinedKeystone, Sections, Settings
    from launcher.embedded.supervisor import Supervisor

_READY = """
The cloud is up.

  compute API   {base_url}/compute/v2.1
  identity      {auth_url}
  dashboard     {base_url}/dashboard/ (users and passwords: clouds.yaml)
  clients       {state_dir}/clouds.yaml (or: source {folder}/openrc)
  metrics       http://{metrics}/metrics
  logs          {state_dir}/log/
{next}
Ctrl-C stops the cloud; its servers are found again at the next start.
"""
_JOINED = """
The cloud is up, as region {region}.

  compute API   {base_url}/compute/v2.1
  identity      {auth_url}
  dashboard     {base_url}/dashboard/
  clients       those of that Keystone, with --os-region-name {region}
  metrics       http://{metrics}/metrics
  logs          {state_dir}/log/

Ctrl-C stops the cloud; its servers are found again at the next start.
"""
_FIRST = """
The first server, in another shell:

  export OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml OS_CLOUD=micronova-demo
  openstack server create --flavor {flavor} --image{image}{network} --wait web-1
  {program} explain web-1
"""
_AGAIN = """
{servers} {noun} in it. To use it in another shell:

  export OS_CLIENT_CONFIG_FILE={folder}/clouds.yaml OS_CLOUD=micronova-demo
  openstack server list
"""
_PROXIED = """
{variable} is set: other clients than micronova send their requests, passwords included, to that
proxy, unless their shell has this (openrc does it where the address is a loopback one):

  export no_proxy="${{no_proxy:-${{NO_PROXY:-}}}},{host}"
"""


def port(text: str) -> int:
    """Return a TCP port; the three after it must be some too."""
    number = int(text)
    if not 0 <= number <= 65532:
        raise argparse.ArgumentTypeError("a port is 0 (any) to 65532")
    return number


def count(text: str) -> int:
    """Return a number from 1."""
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError("at least 1")
    return number


def bridges(text: str) -> int:
    """Return a number of bridges."""
    number = count(text)
    if number > 8:
        raise argparse.ArgumentTypeError("at most 8")
    return number


def speed(text: str) -> float:
    """Return a positive number."""
    number = float(text)
    if not number > 0:
        raise argparse.ArgumentTypeError("more than 0")
    return number


def region(text: str) -> str:
    """Return a name of a region."""
    from launcher.embedded.region import valid_name

    try:
        return valid_name(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error


class Up(Command):
    """Run a whole cloud in the foreground, until Ctrl-C.

    Keystone, the compute, placement, image, network and volume APIs, the dashboard, conductor,
    scheduler, agents and console proxy run as one process tree on SQLite, against simulated
    Proxmox VE clusters or a real one.
    """

    arguments = (
        argument(
            "--state-dir",
            metavar="<dir>",
            type=Path,
            help="Databases, passwords, client files and logs (default: "
            "$XDG_STATE_HOME/micronova or ~/.local/state/micronova)",
        ),
        argument(
            "--host",
            metavar="<address>",
            default="127.0.0.1",
            help="Address to listen on (default: 127.0.0.1). It speaks plain HTTP: put a TLS "
            "proxy in front before choosing an address that other machines reach",
        ),
        argument(
            "--port",
            metavar="<port>",
            type=port,
            default=8774,
            help="Port of the APIs, below /compute, /placement, /image, /network and /volume, "
            "and of /dashboard; identity is on the next one, consoles on the second, metrics on "
            "the third after it. 0: any four (default: 8774)",
        ),
        argument(
            "--nodes",
            metavar="<N>",
            type=count,
            default=3,
            help="Nodes of each simulated cluster (default: 3)",
        ),
        argument(
            "--clusters",
            metavar="<M>",
            type=count,
            default=1,
            help="Simulated clusters (default: 1)",
        ),
        argument(
            "--bridges",
            metavar="<K>",
            type=bridges,
            default=1,
            help="Bridges of each simulated node, each a network: with one (default: 1) a server "
            "needs no network named, with several it does",
        ),
        argument(
            "--speed",
            metavar="<factor>",
            type=speed,
            default=10.0,
            help="Simulated seconds per second: how fast the simulated Proxmox VE works "
            "(default: 10)",
        ),
        argument(
            "--driver",
            metavar="<module:function>",
            default="proxmox",
            help="Another hypervisor driver, as [compute] driver names it (default: proxmox)",
        ),
        argument(
            "--proxmox",
            metavar="<URL>",
            action="append",
            default=[],
            help="A real cluster's API, e.g. https://pve1.example.org:8006, in place of the "
            "simulator; repeat for further nodes of the same cluster",
        ),
        argument(
            "--proxmox-token-file",
            metavar="<file>",
            type=Path,
            help="Its API token as user@realm!name=secret, in a file only you can read",
        ),
        argument(
            "--proxmox-ca",
            metavar="<file>",
            type=Path,
            help="CA certificates to check it by (default: the system's)",
        ),
        argument(
            "--set",
            metavar="<group>.<option>=<value>",
            action="append",
            default=[],
            help="Set an option of the services (see etc/micronova.conf.sample) until the cloud "
            "stops, e.g. conductor.reclaim_instance_interval=3600; repeat for further options, "
            "and for each value of an option that a file may list several times",
        ),
        argument(
            "--region",
            metavar="<name>",
            type=region,
            help="Name of the region in the catalog, chosen at the first start "
            "(default: RegionOne)",
        ),
        argument(
            "--keystone",
            metavar="<URL>",
            help="A Keystone that exists, e.g. another micronova's: the cloud runs none itself, "
            "and joins its catalog as the region that --region names",
        ),
        argument(
            "--keystone-user",
            metavar="<user>",
            default="micronova",
            help="User of the services there, with the roles admin and service on the project "
            "service (default: micronova)",
        ),
        argument(
            "--keystone-password-file",
            metavar="<file>",
            type=Path,
            help="Its password, in a file only you can read",
        ),
        flag(
            "--demo",
            help="Create a server, explain it, delete it, and stop: exit code 0 only if "
            "everything worked and nothing is left",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        """Run the cloud; return when it has stopped."""
        settings = _settings(parsed_args)
        if settings.proxmox:
            # before anything is started or written
            from launcher.embedded.hypervisors import check_token

            check_token(settings)
        from launcher.embedded.state import taken
        from launcher.embedded.supervisor import SIGNALS, Interrupted, Supervisor, interrupt

        progress = for_terminal()
        supervisor = Supervisor(settings, progress)
        is_up = False
        for number in SIGNALS:
            signal.signal(number, interrupt)
        try:
            with taken(settings.state_dir, progress.step), supervisor:
                supervisor.start()
                if parsed_args.demo:
                    return _demo(supervisor, settings)
                is_up = True
                show = self._announce if settings.keystone is None else self._announce_joined
                show(supervisor, settings)
                supervisor.watch()
        except Interrupted as end:
            # A cloud that was asked to stop did what it should; a start or an end that was cut
            # short did not.
            return 0 if is_up and not supervisor.was_cut_short else 128 + end.number
        finally:
            progress.abort()
        return 0

    def _announce_joined(self, supervisor: Supervisor, settings: Settings) -> None:
        text = _JOINED.format(
            base_url=supervisor.base_url,
            auth_url=supervisor.auth_url,
            region=settings.region,
            metrics=supervisor.metrics_address,
            state_dir=settings.state_dir,
        )
        self.app.stdout.write(text)
        self.app.stdout.flush()

    def _announce(self, supervisor: Supervisor, settings: Settings) -> None:
        from common.clients import direct
        from launcher.embedded.example import image, servers

        text = _READY.format(
            base_url=supervisor.base_url,
            auth_url=supervisor.auth_url,
            state_dir=settings.state_dir,
            folder=quote(str(settings.state_dir)),
            metrics=supervisor.metrics_address,
            next=further(
                settings.state_dir,
                servers(settings.state_dir),
                image(settings.state_dir),
                several_networks=bool(settings.proxmox) or settings.bridges > 1,
            ),
        )
        variable = direct.proxied(supervisor.auth_url)
        if variable:
            host = urlsplit(supervisor.auth_url).hostname
            text += _PROXIED.format(variable=variable, host=host)
        self.app.stdout.write(text)
        self.app.stdout.flush()


def further(state_dir: Path, servers: int, image: str, *, several_networks: bool) -> str:
    """Return the commands to begin with; an image has the name that somebody gave it."""
    from launcher.embedded.example import NO_IMAGE

    # the placeholder shows that it is one
    named = image if image == NO_IMAGE else quote(image)
    return (_AGAIN if servers else _FIRST).format(
        servers=servers,
        noun="server is" if servers == 1 else "servers are",
        folder=quote(str(state_dir)),
        flavor="m1.small",
        image=f"{'=' if image.startswith('-') else ' '}{named}",
        # Where there is one network, none needs to be named.
        network=" --network vmbr0" if several_networks else "",
        program=program(),
    )


def program() -> str:
    """Return how this program is called from another shell: by its path, unless it is found."""
    import shutil

    installed = Path(sys.executable).with_name("micronova")
    if shutil.which("micronova") or not installed.exists():
        return "micronova"
    return quote(str(installed))


def _settings(given: argparse.Namespace) -> Settings:
    """Return the settings. Raises CommandFailed for options that exclude each other."""
    from launcher.embedded.settings import Settings
    from launcher.embedded.state import default_state_dir

    if given.proxmox and given.driver != "proxmox":
        raise CommandFailed("--proxmox and --driver exclude each other.")
    if given.proxmox and given.proxmox_token_file is None:
        raise CommandFailed("--proxmox needs --proxmox-token-file.")
    if not given.proxmox and (given.proxmox_token_file or given.proxmox_ca):
        raise CommandFailed("--proxmox-token-file and --proxmox-ca need --proxmox.")
    return Settings(
        region=given.region,
        keystone=_joined(given),
        state_dir=(given.state_dir or default_state_dir()).expanduser().absolute(),
        host=given.host,
        port=given.port,
        nodes=given.nodes,
        clusters=given.clusters,
        bridges=given.bridges,
        driver=given.driver,
        speed=given.speed,
        proxmox=tuple(given.proxmox),
        token_file=given.proxmox_token_file,
        ca_file=given.proxmox_ca,
        chosen=_chosen(given.set),
    )


def _joined(given: argparse.Namespace) -> JoinedKeystone | None:
    """Return the Keystone to join. Raises CommandFailed for options that lack others."""
    from launcher.embedded.settings import JoinedKeystone

    if given.keystone is None:
        if given.keystone_password_file is not None:
            raise CommandFailed("--keystone-password-file needs --keystone.")
        return None
    if given.keystone_password_file is None or given.region is None:
        raise CommandFailed("--keystone needs --keystone-password-file and --region.")
    if given.demo:
        raise CommandFailed("--demo needs a Keystone of its own: leave --keystone out.")
    path = given.keystone_password_file.expanduser().absolute()
    return JoinedKeystone(given.keystone, given.keystone_user, path)


def _chosen(given: Sequence[str]) -> Sections:
    """Return the options that were given by name. Raises ConfigurationError."""
    if not given:
        # All that declares options is imported otherwise.
        return {}
    from launcher.embedded.chosen import chosen

    return chosen(given)


def _demo(supervisor: Supervisor, settings: Settings) -> int:
    """Run the demo as a client of its own, on our terminal; return its exit code."""
    from common.process.child import die_with_parent, environment, python

    arguments = [str(settings.state_dir / "clouds.yaml")]
    if settings.simulated:
        arguments += [str(settings.state_dir / "simulator")]
    with subprocess.Popen(  # noqa: S603
        python("cli.demo", *arguments),
        env=environment(),
        stdin=subprocess.DEVNULL,
        preexec_fn=die_with_parent,  # noqa: PLW1509 - one call of libc, no locks
    ) as client:
        try:
            return client.wait()
        finally:
            client.terminate()  # has no effect on a client that has ended
