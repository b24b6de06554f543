"""Calls are counted by template, so names and numbers never become labels."""

from __future__ import annotations

import re

import pytest

from compute.hypervisor.proxmox.api.templates import template
from simulator.http.routes import ROUTES

UPID = "UPID:pve1:00001234:00005678:65000000:qmstart:100:root@pam:"


@pytest.mark.parametrize(
    ("path", "wanted"),
    [
        ("cluster/resources", "cluster/resources"),
        ("version", "version"),
        ("nodes/pve1/status", "nodes/{node}/status"),
        ("nodes/pve1/qemu", "nodes/{node}/qemu"),
        ("nodes/pve1/qemu/101/status/start", "nodes/{node}/qemu/{vmid}/status/start"),
        ("nodes/pve1/qemu/101/snapshot/s1", "nodes/{node}/qemu/{vmid}/snapshot/{snapshot}"),
        (
            "nodes/qemu/qemu/101/snapshot/a-b/rollback",
            "nodes/{node}/qemu/{vmid}/snapshot/{snapshot}/rollback",
        ),
        ("nodes/pve1/capabilities/qemu/machines", "nodes/{node}/capabilities/qemu/machines"),
        (f"nodes/pve1/tasks/{UPID}/log", "nodes/{node}/tasks/{upid}/log"),
        ("nodes/pve1/storage/local/content", "nodes/{node}/storage/{storage}/content"),
        (
            "nodes/pve1/storage/local/content/local:import/a.qcow2",
            "nodes/{node}/storage/{storage}/content/{volume}",
        ),
        ("nodes/pve1/storage/tasks/upload", "nodes/{node}/storage/{storage}/upload"),
        ("nodes/pve1/sdn/zones/z1/content", "nodes/{node}/sdn/zones/{zone}/content"),
        ("cluster/sdn/vnets/mn12/subnets", "cluster/sdn/vnets/{vnet}/subnets"),
        ("cluster/ha/resources/vm:101", "cluster/ha/resources/{name}"),
        ("cluster/ha/rules", "cluster/ha/rules"),
        ("cluster/ha/rules/micronova-1", "cluster/ha/rules/{name}"),
        ("nodes/n/qemu/1/firewall/rules/0", "nodes/{node}/qemu/{vmid}/firewall/rules/{entry}"),
        ("nodes/n/qemu/1/firewall/ipset/s", "nodes/{node}/qemu/{vmid}/firewall/ipset/{set}"),
        (
            "nodes/n/qemu/1/firewall/ipset/s/10.0.0.0%2F8",
            "nodes/{node}/qemu/{vmid}/firewall/ipset/{set}/{cidr}",
        ),
        ("access/users/a@pve/token/t", "access/users/{user}/token/{token}"),
    ],
)
def test_names_and_numbers_are_left_out(path: str, wanted: str) -> None:
    assert template(path) == wanted


@pytest.mark.parametrize("path", sorted({one.path for one in ROUTES if "qemu" in one.path}))
def test_two_vms_have_one_template(path: str) -> None:
    def filled(node: str, number: int) -> str:
        text = path.strip("/").replace("{node}", node).replace("{vmid}", str(number))
        return template(re.sub(r"{\w+}", f"x{number}", text))

    assert filled("pve1", 101) == filled("pve22", 20_202)
