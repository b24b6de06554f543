"""Routes of a cluster as a whole: access, options, HA, pools, storages, backups."""

from __future__ import annotations

from simulator.api import access, bulk, cluster, mappings, options, pools, resources, shares
from simulator.api.ha import configuration as ha
from simulator.api.ha import manager as ha_manager
from simulator.api.storage import backups, storages
from simulator.request.call import Calls, nothing


def _shares(kind: str) -> Calls:
    """Return the routes for mappings of a kind of device."""
    path = f"/cluster/mapping/{kind}"
    return {
        f"GET {path}": shares.listing,
        f"POST {path}": shares.create,
        f"GET {path}/{{id}}": shares.one,
        f"DELETE {path}/{{id}}": shares.delete,
    }


CALLS: Calls = {
    "GET /access/acl": access.grants,
    "PUT /access/acl": access.set_grants,
    "GET /access/permissions": access.permissions,
    "GET /access/roles": access.roles,
    "POST /access/roles": access.create_role,
    "PUT /access/roles/{roleid}": access.change_role,
    "DELETE /access/roles/{roleid}": access.delete_role,
    "GET /access/ticket": access.no_ticket,
    "POST /access/ticket": access.ticket,
    "GET /access/users": access.users,
    "POST /access/users": access.create_user,
    "PUT /access/users/{userid}": access.change_user,
    "DELETE /access/users/{userid}": access.delete_user,
    "GET /access/users/{userid}/token": access.tokens,
    "GET /access/users/{userid}/token/{tokenid}": access.token,
    "POST /access/users/{userid}/token/{tokenid}": access.create_token,
    "PUT /access/users/{userid}/token/{tokenid}": access.change_token,
    "DELETE /access/users/{userid}/token/{tokenid}": access.delete_token,
    "GET /cluster/backup": backups.jobs,
    "GET /cluster/backup-info/not-backed-up": backups.not_backed_up,
    "GET /cluster/bulk-action": bulk.index,
    "GET /cluster/bulk-action/guest": bulk.guest_index,
    "POST /cluster/bulk-action/guest/migrate": bulk.migrate,
    "POST /cluster/bulk-action/guest/shutdown": bulk.shutdown,
    "POST /cluster/bulk-action/guest/start": bulk.start,
    "POST /cluster/bulk-action/guest/suspend": bulk.suspend,
    "GET /cluster/ha": ha_manager.index,
    "GET /cluster/ha/groups": ha.groups,
    "POST /cluster/ha/groups": ha.add_group,
    "DELETE /cluster/ha/groups/{group}": ha.delete_group,
    "GET /cluster/ha/resources": ha.resources,
    "POST /cluster/ha/resources": ha.add_resource,
    "GET /cluster/ha/resources/{sid}": ha.resource,
    "PUT /cluster/ha/resources/{sid}": ha.change_resource,
    "DELETE /cluster/ha/resources/{sid}": ha.delete_resource,
    "POST /cluster/ha/resources/{sid}/migrate": ha_manager.migrate,
    "POST /cluster/ha/resources/{sid}/relocate": ha_manager.relocate,
    "GET /cluster/ha/rules": ha.rules,
    "POST /cluster/ha/rules": ha.add_rule,
    "GET /cluster/ha/rules/{rule}": ha.rule,
    "PUT /cluster/ha/rules/{rule}": ha.change_rule,
    "DELETE /cluster/ha/rules/{rule}": ha.delete_rule,
    "GET /cluster/ha/status/current": ha_manager.current,
    "GET /cluster/ha/status/manager_status": ha_manager.manager,
    "GET /cluster/mapping": shares.index,
    "GET /cluster/mapping/pci": mappings.mappings,
    "POST /cluster/mapping/pci": mappings.create,
    "DELETE /cluster/mapping/pci/{id}": mappings.delete,
    "GET /cluster/nextid": cluster.nextid,
    "GET /cluster/options": options.options,
    "PUT /cluster/options": options.set_options,
    "GET /cluster/qemu/custom-cpu-models": nothing,
    "GET /cluster/replication": nothing,
    "GET /cluster/resources": resources.resources,
    "GET /cluster/status": cluster.status,
    "GET /cluster/tasks": cluster.tasks,
    "GET /pools": pools.pools,
    "POST /pools": pools.create_pool,
    "PUT /pools": pools.update_pool,
    "DELETE /pools": pools.delete_pool,
    "GET /pools/{poolid}": pools.pool,
    "PUT /pools/{poolid}": pools.update_pool,
    "DELETE /pools/{poolid}": pools.delete_pool,
    "GET /storage": storages.configurations,
    "POST /storage": storages.create,
    "GET /storage/{storage}": storages.configuration,
    "PUT /storage/{storage}": storages.change,
    "DELETE /storage/{storage}": storages.delete,
    "GET /version": cluster.version,
    **_shares("dir"),
    **_shares("usb"),
}
