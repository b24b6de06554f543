"""What is left of servers in simulated clusters: VMs, volumes, locks and running tasks."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from common.clients import direct

Held = dict[str, list[str]]

_CONTENT_OF_IMAGES = frozenset({"import", "vztmpl"})


def held(folder: Path) -> dict[str, Held]:
    """Return {cluster: what is left} of the simulator whose state is in `folder`.

    Cached templates and the images themselves are no server's and are left out.
    """
    return {name: of_servers(state) for name, state in states(folder)}


def states(folder: Path) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Yield each cluster's name and whole state."""
    endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
    with direct.session() as session:
        answer = session.get(
            f"{endpoints[0]['url']}/_sim/state", verify=str(folder / "ca.pem"), timeout=30
        )
    answer.raise_for_status()
    for cluster in answer.json()["clusters"]:
        yield cluster["name"], cluster


def of_servers(state: Mapping[str, Any]) -> Held:
    """Return what a cluster's state has that belongs to servers."""
    templates = {vm["vmid"] for vm in state["vms"] if str(vm["config"].get("template")) == "1"}
    return {
        "machines": [
            f"{vm['vmid']} on {vm['node']}"
            for vm in state["vms"]
            if vm["vmid"] not in templates or vm["lock"]
        ],
        "volumes": [
            volume["volid"]
            for volume in state["volumes"]
            if volume["content"] not in _CONTENT_OF_IMAGES and volume["vmid"] not in templates
        ],
        "locks": [lock["name"] for lock in state["locks"]],
        "tasks": [task["upid"] for task in state["tasks"]],
    }
