"""A person with root's password, who acts on VMs through Proxmox VE's API."""

from __future__ import annotations

from typing import Any

from proxmoxer import ProxmoxAPI

from tests.chaos.world import World


class Person:
    """Somebody with root's password."""

    def __init__(self, cloud: World) -> None:
        self._cloud = cloud
        url = cloud.simulator.endpoints[0]["url"]
        host, _, port = url.removeprefix("https://").rpartition(":")
        self.api = ProxmoxAPI(
            host,
            port=int(port),
            user="root@pam",
            password=cloud.simulator.password,
            verify_ssl=str(cloud.simulator.options.state_dir / "ca.pem"),
        )

    def vm(self, row: Any) -> Any:
        """A VM."""
        return self.api.nodes(row.node).qemu(row.vmid)

    def task(self, node: str, upid: str) -> None:
        """Wait until a task has ended well."""
        tasks = self.api.nodes(node).tasks(upid)
        ended = self._cloud.until(
            lambda: (status := tasks.status.get())["status"] == "stopped" and status
        )
        assert ended["exitstatus"] == "OK"
