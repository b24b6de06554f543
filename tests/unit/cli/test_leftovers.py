"""What of a simulated cluster belongs to servers."""

from __future__ import annotations

from typing import Any

from cli.leftovers import of_servers


def vm(vmid: int, lock: str = "", **config: Any) -> dict[str, Any]:
    return {"vmid": vmid, "node": "pve1", "config": config, "lock": lock}


def volume(volid: str, vmid: int, content: str = "images") -> dict[str, Any]:
    return {"volid": volid, "vmid": vmid, "content": content}


def state(**parts: Any) -> dict[str, Any]:
    return {"vms": [], "volumes": [], "locks": [], "tasks": [], **parts}


def test_images_and_templates_are_no_servers() -> None:
    held = of_servers(
        state(
            vms=[vm(100, template="1")],
            volumes=[
                volume("shared:import/debian-12.qcow2", 0, "import"),
                volume("local:100/base-100-disk-0.qcow2", 100),
            ],
        )
    )
    assert held == {"machines": [], "volumes": [], "locks": [], "tasks": []}


def test_everything_else_is() -> None:
    held = of_servers(
        state(
            vms=[vm(101), vm(102, lock="create", template=1)],
            volumes=[
                volume("local:101/vm-101-disk-0.qcow2", 101),
                volume("local:iso/config.iso", 0, "iso"),
            ],
            locks=[{"name": "lock-101.conf"}],
            tasks=[{"upid": "UPID:x"}],
        )
    )
    assert held["machines"] == ["101 on pve1", "102 on pve1"]
    assert held["volumes"] == ["local:101/vm-101-disk-0.qcow2", "local:iso/config.iso"]
    assert held["locks"] == ["lock-101.conf"]
    assert held["tasks"] == ["UPID:x"]
