"""``micronova server create``."""

from __future__ import annotations

import argparse
import base64
from pathlib import Path
from typing import Any

from cli.cloud import Cloud
from cli.command import Pairs, ShowOne, argument, flag, given, one_of
from cli.errors import CommandFailed
from cli.server.disks import DISKS, disks
from cli.server.show import show
from cli.server.waiting import Waiting
from cli.server.where import WHERE, where

_NIC_KEYS = {
    "net-id": "uuid",
    "port-id": "port",
    "v4-fixed-ip": "fixed_ip",
    "v6-fixed-ip": "fixed_ip",
    "tag": "tag",
}


class Nic(argparse.Action):
    """One ``--nic``, ``--network`` or ``--port``: into the list ``nics``, in the order given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,
        namespace: argparse.Namespace,
        values: Any,
        option_string: str | None = None,
    ) -> None:
        text = str(values)
        if option_string == "--network":
            text = f"net-id={values}"
        elif option_string == "--port":
            text = f"port-id={values}"
        try:
            nic = parse_nic(text)
        except ValueError as error:
            raise argparse.ArgumentError(self, str(error)) from None
        setattr(namespace, self.dest, [*(getattr(namespace, self.dest) or []), nic])


def parse_nic(text: str) -> str | dict[str, str]:
    """Return ``auto``, ``none`` or what ``net-id=…,v4-fixed-ip=…`` says, by API key.

    :raises ValueError: it says nothing that can be understood.
    """
    if text in ("auto", "none"):
        return text
    given_keys: dict[str, str] = {}
    for part in text.split(","):
        key, _, value = part.partition("=")
        if key not in _NIC_KEYS or not value:
            raise ValueError(
                f"{part!r} is none of auto, none, {', '.join(_NIC_KEYS)} with a value"
            )
        given_keys[key] = value
    for first, second in (("net-id", "port-id"), ("v4-fixed-ip", "v6-fixed-ip")):
        if first in given_keys and second in given_keys:
            raise ValueError(f"{first} and {second} exclude each other")
    if not given_keys.keys() & {"net-id", "port-id"}:
        raise ValueError("one of net-id and port-id is needed")
    return {_NIC_KEYS[key]: value for key, value in given_keys.items()}


class CreateServer(ShowOne):
    """Create a server."""

    arguments = (
        argument("server_name", metavar="<server-name>", help="Name"),
        argument("--flavor", metavar="<flavor>", required=True, help="Flavor (name or ID)"),
        *DISKS,
        argument(
            "--network", metavar="<network>", dest="nics", action=Nic, help="Network (repeat)"
        ),
        argument("--port", metavar="<port>", dest="nics", action=Nic, help="Port (repeat)"),
        argument(
            "--nic",
            metavar="<net-id=network,v4-fixed-ip=address,tag=tag|port-id=port|auto|none>",
            dest="nics",
            action=Nic,
            help="Network interface (repeat); auto: the cloud chooses (default)",
        ),
        argument(
            "--no-network", dest="nics", action="store_const", const=["none"], help="--nic none"
        ),
        argument(
            "--auto-network", dest="nics", action="store_const", const=["auto"], help="--nic auto"
        ),
        argument("--key-name", metavar="<key-name>", help="Keypair for the guest"),
        argument("--user-data", metavar="<file>", help="File of user data for the guest"),
        argument(
            "--security-group",
            metavar="<security-group>",
            action="append",
            default=[],
            dest="security_groups",
            help="Security group (repeat)",
        ),
        argument(
            "--property",
            metavar="<key=value>",
            action=Pairs,
            dest="properties",
            help="Property (repeat)",
        ),
        argument(
            "--tag", metavar="<tag>", action="append", default=[], dest="tags", help="Tag (repeat)"
        ),
        argument("--description", metavar="<description>", help="Description"),
        *WHERE,
        argument("--min", metavar="<count>", type=int, default=1, help="Minimum number (1)"),
        argument("--max", metavar="<count>", type=int, default=1, help="Maximum number (1)"),
        one_of(
            flag(
                "--use-config-drive",
                dest="config_drive",
                default=None,
                help="Attach a config drive",
            ),
            argument(
                "--no-config-drive",
                dest="config_drive",
                action="store_const",
                const=False,
                help="Attach no config drive",
            ),
            argument(
                "--config-drive",
                metavar="<true|false>",
                dest="config_drive",
                type=lambda text: text.lower() in ("true", "1", "yes"),
                help="The same, as a value",
            ),
        ),
        argument("--hostname", metavar="<hostname>", help="Hostname of the guest"),
        flag("--wait", help="Wait until it is built, and show the steps"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it; with --wait show the build and fail with the fault's sentence."""
        compute = self.cloud.compute
        server = compute.create_server(**self._attributes(parsed_args))
        if parsed_args.wait:
            waiting = Waiting(self.cloud, self.app.stderr)
            siblings = self._siblings(server, parsed_args.max)
            for one in siblings:
                if len(siblings) > 1:
                    self.say(f"{one.name}:")
                waiting.until_idle(one.id, one.name, "create")
        password = server.admin_password
        server = compute.get_server(server.id)
        names, values = show(self.cloud, server)
        if password:
            shown = {**dict(zip(names, values, strict=True)), "adminPass": password}
            names, values = zip(*sorted(shown.items()), strict=True)
        return names, values

    def _siblings(self, server: Any, most: int) -> list[Any]:
        """Return all servers of the request that created this one."""
        if most <= 1:
            return [server]
        created = self.cloud.compute.get_server(server.id)
        if not created.reservation_id:
            return [created]
        return list(self.cloud.compute.servers(reservation_id=created.reservation_id))

    def _attributes(self, parsed_args: argparse.Namespace) -> dict[str, Any]:
        if parsed_args.min > parsed_args.max:
            raise CommandFailed("--min is more than --max")
        optional = given(
            parsed_args,
            "key_name",
            "tags",
            "description",
            "hostname",
            "config_drive",
        )
        attributes, hints = where(self.cloud, parsed_args)
        optional |= attributes
        if hints:
            optional["scheduler_hints"] = hints
        if parsed_args.properties:
            optional["metadata"] = parsed_args.properties
        if parsed_args.user_data:
            optional["user_data"] = _encoded(parsed_args.user_data)
        if parsed_args.security_groups:
            optional["security_groups"] = [{"name": n} for n in parsed_args.security_groups]
        nics = parsed_args.nics
        if nics is None and self.cloud.supports("2.37"):
            nics = ["auto"]  # required since then
        if nics is not None:
            optional["networks"] = network_ids(self.cloud, nics)
        return {
            "name": parsed_args.server_name,
            "flavor_id": self.cloud.find("flavor", parsed_args.flavor).id,
            "min_count": parsed_args.min,
            "max_count": parsed_args.max,
            **disks(self.cloud, parsed_args),
            **optional,
        }


def network_ids(cloud: Cloud, nics: list[Any]) -> str | list[dict[str, str]]:
    """Return what ``Nic`` gathered as the API takes it, names resolved."""
    words = [nic for nic in nics if isinstance(nic, str)]
    if words:
        if len(nics) > 1:
            raise CommandFailed(f"--nic {words[0]} can't be combined with another network or port")
        return words[0]
    resolved = []
    for nic in nics:
        ids = dict(nic)
        if "uuid" in nic:
            ids["uuid"] = cloud.find("network", nic["uuid"]).id
        if "port" in nic:
            ids["port"] = cloud.find("port", nic["port"]).id
        resolved.append(ids)
    return resolved


def _encoded(name: str) -> str:
    path = Path(name).expanduser()
    try:
        return base64.b64encode(path.read_bytes()).decode()
    except OSError as error:
        raise CommandFailed(f"Can't read {path}: {error.strerror}") from error
