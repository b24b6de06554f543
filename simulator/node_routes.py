"""Routes of a node: its state, tasks, devices, storages and backups."""

from __future__ import annotations

from typing import Any

from simulator import (
    backup_api,
    bulk,
    cluster_api,
    host_api,
    mapping_api,
    node_api,
    resources,
    statistics,
    storage_api,
    upload,
    volume_api,
    vzdump,
)
from simulator.call import Call, Calls, nothing
from simulator.errors import PveError

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
    "GET /nodes/{node}": node_api.index,
    "GET /nodes/{node}/capabilities": _list({"name": "qemu"}),
    "GET /nodes/{node}/capabilities/qemu": _list(
        *({"name": name} for name in ("cpu", "cpu-flags", "machines", "migration"))
    ),
    "GET /nodes/{node}/capabilities/qemu/machines": mapping_api.machines,
    "GET /nodes/{node}/capabilities/qemu/migration": lambda _call: {"has-dbus-vmstate": True},
    "GET /nodes/{node}/certificates": _list(
        {"name": "acme"}, {"name": "custom"}, {"name": "info"}
    ),
    "GET /nodes/{node}/certificates/info": node_api.certificates,
    "GET /nodes/{node}/hardware": _list({"type": "pci"}, {"type": "usb"}),
    "GET /nodes/{node}/hardware/usb": nothing,
    "GET /nodes/{node}/lxc": node_api.containers,
    "POST /nodes/{node}/migrateall": bulk.migrate_all,
    "GET /nodes/{node}/network": node_api.network,
    "POST /nodes/{node}/network": host_api.add_interface,
    "PUT /nodes/{node}/network": host_api.apply,
    "GET /nodes/{node}/network/{iface}": host_api.interface,
    "PUT /nodes/{node}/network/{iface}": host_api.change_interface,
    "GET /nodes/{node}/rrddata": statistics.of_node,
    "POST /nodes/{node}/startall": bulk.start_all,
    "GET /nodes/{node}/services": node_api.services,
    "POST /nodes/{node}/services/{service}/restart": host_api.restart,
    "GET /nodes/{node}/status": node_api.status,
    "POST /nodes/{node}/stopall": bulk.stop_all,
    "GET /nodes/{node}/storage": storage_api.node_storages,
    f"GET {_ST}": storage_api.node_storage_index,
    f"GET {_ST}/content": storage_api.contents,
    f"POST {_ST}/content": volume_api.allocate,
    f"GET {_ST}/content/{{volume}}": volume_api.one_content,
    f"PUT {_ST}/content/{{volume}}": volume_api.change,
    f"DELETE {_ST}/content/{{volume}}": volume_api.delete,
    f"POST {_ST}/download-url": storage_api.download,
    f"GET {_ST}/identity": _identity,
    f"GET {_ST}/prunebackups": backup_api.prunable,
    f"GET {_ST}/rrddata": statistics.of_storage,
    f"GET {_ST}/status": storage_api.node_storage,
    f"POST {_ST}/upload": upload.upload,
    "POST /nodes/{node}/suspendall": bulk.suspend_all,
    "GET /nodes/{node}/tasks": node_api.tasks,
    "GET /nodes/{node}/tasks/{upid}": node_api.task_index,
    "DELETE /nodes/{node}/tasks/{upid}": node_api.stop_task,
    "GET /nodes/{node}/tasks/{upid}/log": node_api.task_log,
    "GET /nodes/{node}/tasks/{upid}/status": node_api.task_status,
    "GET /nodes/{node}/time": cluster_api.clock,
    "GET /nodes/{node}/version": cluster_api.node_version,
    "POST /nodes/{node}/vzdump": vzdump.dump,
    "GET /nodes/{node}/vzdump/defaults": backup_api.defaults,
    "GET /nodes/{node}/vzdump/extractconfig": backup_api.extract_config,
}
