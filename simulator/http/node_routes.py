"""Routes of a node: its state, tasks, devices, storages and backups."""

from __future__ import annotations

from typing import Any

from simulator.api import bulk, cluster, hosts, mappings, nodes, resources, statistics
from simulator.api.storage import backups, content, upload, volumes, vzdump
from simulator.errors import PveError
from simulator.request.call import Call, Calls, nothing

_ST = "/nodes/{node}/storage/{storage}"


def _list(*entries: dict[str, str]) -> Any:
    """Return a handler with a fixed answer."""
    return lambda _call: list(entries)


def _identity(_call: Call) -> None:
    raise PveError(
        "get_identity not implemented for this plugin "
        "at /usr/share/perl5/PVE/Storage/Plugin.pm line 2681."
    )


CALLS: Calls = {
    "GET /nodes": resources.nodes,
    "GET /nodes/{node}": nodes.index,
    "GET /nodes/{node}/capabilities": _list({"name": "qemu"}),
    "GET /nodes/{node}/capabilities/qemu": _list(
        *({"name": name} for name in ("cpu", "cpu-flags", "machines", "migration"))
    ),
    "GET /nodes/{node}/capabilities/qemu/machines": mappings.machines,
    "GET /nodes/{node}/capabilities/qemu/migration": lambda _call: {"has-dbus-vmstate": True},
    "GET /nodes/{node}/certificates": _list(
        {"name": "acme"}, {"name": "custom"}, {"name": "info"}
    ),
    "GET /nodes/{node}/certificates/info": nodes.certificates,
    "GET /nodes/{node}/hardware": _list({"type": "pci"}, {"type": "usb"}),
    "GET /nodes/{node}/hardware/usb": nothing,
    "GET /nodes/{node}/lxc": nodes.containers,
    "POST /nodes/{node}/migrateall": bulk.migrate_all,
    "GET /nodes/{node}/network": nodes.network,
    "POST /nodes/{node}/network": hosts.add_interface,
    "PUT /nodes/{node}/network": hosts.apply,
    "GET /nodes/{node}/network/{iface}": hosts.interface,
    "PUT /nodes/{node}/network/{iface}": hosts.change_interface,
    "GET /nodes/{node}/rrddata": statistics.of_node,
    "POST /nodes/{node}/startall": bulk.start_all,
    "GET /nodes/{node}/services": nodes.services,
    "POST /nodes/{node}/services/{service}/restart": hosts.restart,
    "GET /nodes/{node}/status": nodes.status,
    "POST /nodes/{node}/stopall": bulk.stop_all,
    "GET /nodes/{node}/storage": content.node_storages,
    f"GET {_ST}": content.node_storage_index,
    f"GET {_ST}/content": content.contents,
    f"POST {_ST}/content": volumes.allocate,
    f"GET {_ST}/content/{{volume}}": volumes.one_content,
    f"PUT {_ST}/content/{{volume}}": volumes.change,
    f"DELETE {_ST}/content/{{volume}}": volumes.delete,
    f"POST {_ST}/download-url": content.download,
    f"GET {_ST}/identity": _identity,
    f"GET {_ST}/prunebackups": backups.prunable,
    f"GET {_ST}/rrddata": statistics.of_storage,
    f"GET {_ST}/status": content.node_storage,
    f"POST {_ST}/upload": upload.upload,
    "POST /nodes/{node}/suspendall": bulk.suspend_all,
    "GET /nodes/{node}/tasks": nodes.tasks,
    "GET /nodes/{node}/tasks/{upid}": nodes.task_index,
    "DELETE /nodes/{node}/tasks/{upid}": nodes.stop_task,
    "GET /nodes/{node}/tasks/{upid}/log": nodes.task_log,
    "GET /nodes/{node}/tasks/{upid}/status": nodes.task_status,
    "GET /nodes/{node}/time": cluster.clock,
    "GET /nodes/{node}/version": cluster.node_version,
    "POST /nodes/{node}/vzdump": vzdump.dump,
    "GET /nodes/{node}/vzdump/defaults": backups.defaults,
    "GET /nodes/{node}/vzdump/extractconfig": backups.extract_config,
}
