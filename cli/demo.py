"""The demo: a user's first server, its explanation, and a check that nothing of it is left.

    python -m cli.demo <clouds.yaml> [<state directory of the simulator>]

It is a client like any other: openstacksdk and the public APIs. Only what a user can't see is
looked up elsewhere: what the simulated Proxmox VE still holds.
"""

from __future__ import annotations

import base64
import sys
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import openstack.config
import openstack.connection
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ed25519

from cli.leftovers import held
from cli.streams import write_anything
from common.clients import direct
from common.story.explanation import explanation_lines
from common.story.text import plain_text

NETWORK = "vmbr0"
WAIT_SECONDS = 300
_USER_DATA = "#cloud-config\nfinal_message: hello from micronova\n"


class NotHeld(Exception):
    """A check of the demo failed."""


class Demo:
    """One run; `say` prints a line."""

    def __init__(
        self, clouds_file: Path, simulator: Path | None, say: Callable[[str], None]
    ) -> None:
        self._say = say
        self._simulator = simulator
        self._cloud = _connect(clouds_file, "micronova-demo")
        self._admin = _connect(clouds_file, "micronova-admin")
        self._name = f"demo-{uuid.uuid4().hex[:8]}"
        self._before = self._held()

    def run(self) -> None:
        """Create, look, explain, delete, check. Raises NotHeld."""
        compute = self._cloud.compute
        keypair = compute.create_keypair(name=self._name, public_key=_public_key())
        self._say(f"key pair {keypair.name}: {keypair.fingerprint}")
        server = None
        try:
            server = self._create(keypair.name)
            self._show(server)
        finally:
            if server is not None:
                self._delete(server)
            compute.delete_keypair(keypair)
        self._check()

    def _create(self, key_name: str) -> Any:
        compute = self._cloud.compute
        flavor = compute.find_flavor("m1.tiny", ignore_missing=False)
        images = (one for one in self._cloud.image.images() if one.disk_format != "iso")
        image = min(images, key=lambda one: (one.size or 0, one.name))
        network = self._cloud.network.find_network(NETWORK, ignore_missing=False)
        if image.min_disk and image.min_disk > flavor.disk:
            flavor = compute.find_flavor("m1.small", ignore_missing=False)
        began = time.monotonic()
        server = compute.create_server(
            name=self._name,
            flavor_id=flavor.id,
            image_id=image.id,
            networks=[{"uuid": network.id}],
            key_name=key_name,
            user_data=base64.b64encode(_USER_DATA.encode()).decode(),
        )
        self._say(f"server {self._name}: {flavor.name}, {image.name}, on {network.name}")
        server = compute.wait_for_server(server, wait=WAIT_SECONDS, interval=0.2)
        self._say(f"ACTIVE after {time.monotonic() - began:.1f} s")
        return compute.get_server(server.id)

    def _show(self, server: Any) -> None:
        addresses = [one["addr"] for interfaces in server.addresses.values() for one in interfaces]
        _hold(server.status == "ACTIVE", f"the server is {server.status}")
        network = self._cloud.network.find_network(NETWORK, ignore_missing=False)
        if network.subnet_ids:
            _hold(bool(addresses), "the server has no address")
        self._say(f"addresses: {', '.join(addresses) or 'from the DHCP server of its network'}")
        self._explain(server)

    def _explain(self, server: Any) -> None:
        """Print what happened, step by step, from the ledger."""
        answer = self._cloud.compute.get(f"/explanations/{server.id}")
        _hold(answer.status_code == 200, f"explain answers {answer.status_code}")
        self._say(plain_text(explanation_lines(answer.json()["explanation"])))

    def _delete(self, server: Any) -> None:
        compute = self._cloud.compute
        compute.delete_server(server)
        compute.wait_for_delete(server, wait=WAIT_SECONDS, interval=0.2)
        self._say("deleted")

    def _check(self) -> None:
        """Raise NotHeld when anything of the server is left."""
        after = self._held()
        for what, before in self._before.items():
            _hold(after[what] == before, f"{what}: {after[what]}, before the demo {before}")
            self._say(f"nothing is left of it: {what}")

    def _held(self) -> dict[str, Any]:
        """Return the quota, allocations and simulated resources in use now."""
        found: dict[str, Any] = {
            "quota": _usage(self._cloud),
            "allocations": _allocations(self._admin),
        }
        if self._simulator is not None:
            found["machines, volumes, locks and tasks"] = held(self._simulator)
        return found


def _connect(clouds_file: Path, name: str) -> Any:
    config = openstack.config.OpenStackConfig(
        config_files=[str(clouds_file)], load_envvars=False
    ).get_one(name)
    made = openstack.connection.Connection(config=config)
    direct.without_environment(made.session.session)  # it is the cloud of this machine
    return made


def _public_key() -> str:
    key = ed25519.Ed25519PrivateKey.generate().public_key()
    openssh = key.public_bytes(serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH)
    return openssh.decode()


def _usage(cloud: Any) -> dict[str, int]:
    absolute = cloud.compute.get("/limits").json()["limits"]["absolute"]
    return {
        "instances": absolute["totalInstancesUsed"],
        "cores": absolute["totalCoresUsed"],
        "ram": absolute["totalRAMUsed"],
    }


def _allocations(admin: Any) -> dict[str, dict[str, int]]:
    """Return {provider: {resource class: used}}."""
    placement = admin.placement
    used: dict[str, dict[str, int]] = {}
    for provider in placement.get("/resource_providers").json()["resource_providers"]:
        answer = placement.get(f"/resource_providers/{provider['uuid']}/usages").json()
        used[provider["name"]] = answer["usages"]
    return used


def _hold(held: bool, otherwise: str) -> None:
    if not held:
        raise NotHeld(otherwise)


def main(arguments: list[str]) -> int:
    """Run; return 0 only if all held."""

    def say(line: str) -> None:
        sys.stdout.write(line + "\n")
        sys.stdout.flush()

    write_anything()
    clouds_file, *simulator = arguments
    try:
        Demo(Path(clouds_file), Path(simulator[0]) if simulator else None, say).run()
    except Exception as error:  # noqa: BLE001 - any failure is shown and counts
        sys.stderr.write(f"The demo failed: {type(error).__name__}: {error}\n")
        return 1
    say("All held, and nothing is left.")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
