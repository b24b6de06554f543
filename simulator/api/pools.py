"""Resource pools over the API."""

from __future__ import annotations

from typing import Any

from simulator.api.resources import guest, refresh
from simulator.errors import PveError
from simulator.request.call import Call
from simulator.state.model import Pool


def pools(call: Call) -> list[dict[str, Any]]:
    """`GET /pools`."""
    access = call.cluster.access
    wanted = call.get("poolid")
    if wanted:
        access.require(call.who, f"/pool/{wanted}", "Pool.Audit")
        return [_pool(call, _found_pool(call, wanted))]
    shown = []
    for pool in call.cluster.pools.values():
        if access.has(call.who, f"/pool/{pool.poolid}", "Pool.Audit"):
            entry: dict[str, Any] = {"poolid": pool.poolid}
            if pool.comment:
                entry["comment"] = pool.comment
            shown.append(entry)
    return shown


def pool(call: Call) -> dict[str, Any]:
    """`GET /pools/{poolid}`."""
    shown = _pool(call, _found_pool(call, call.get("poolid")))
    shown.pop("poolid")
    return shown


def _found_pool(call: Call, poolid: str) -> Pool:
    found = call.cluster.pools.get(poolid)
    if found is None:
        raise PveError(f"pool '{poolid}' does not exist")
    return found


def _pool(call: Call, found: Pool) -> dict[str, Any]:
    refresh(call.cluster)
    members = [guest(call.cluster, call.cluster.vms[vmid]) for vmid in found.vms]
    shown: dict[str, Any] = {"poolid": found.poolid, "members": members}
    if found.comment:
        shown["comment"] = found.comment
    return shown


def create_pool(call: Call) -> None:
    """`POST /pools`."""
    poolid = call.get("poolid")
    if not call.cluster.quorate:
        raise PveError("create pool failed: cfs-lock 'file-user_cfg' error: no quorum!")
    if poolid in call.cluster.pools:
        raise PveError(f"create pool failed: pool '{poolid}' already exists")
    parent, nested, _name = poolid.rpartition("/")
    if nested and parent not in call.cluster.pools:
        raise PveError(f"create pool failed: parent '{parent}' of pool '{poolid}' does not exist")
    made = Pool(poolid, call.get("comment"))
    call.cluster.pools[poolid] = made
    call.cluster.save("pool", poolid, made)


def update_pool(call: Call) -> None:
    """`PUT /pools`: comment and members."""
    found = _found_pool(call, call.get("poolid"))
    if "comment" in call.params:
        found.comment = call.get("comment")
    for text in [one for one in call.get("vms").replace(";", ",").split(",") if one]:
        vmid = int(text)
        if call.flag("delete"):
            if vmid not in found.vms:
                raise PveError(f"update pools failed: VM {vmid} is not a pool member")
            call.cluster.set_pool(vmid, None)
            continue
        present = call.cluster.access.pool_of.get(vmid)
        if present is not None and not call.flag("allow-move"):
            raise PveError(
                f"update pools failed: VM {vmid} belongs already to pool '{present}' and "
                "'allow-move' is not set"
            )
        call.cluster.set_pool(vmid, found.poolid)
    call.cluster.save("pool", found.poolid, found)


def delete_pool(call: Call) -> None:
    """`DELETE /pools`."""
    found = _found_pool(call, call.get("poolid"))
    if found.vms:
        raise PveError(
            f"delete pool failed: pool '{found.poolid}' is not empty (contains VM {found.vms[0]})"
        )
    del call.cluster.pools[found.poolid]
    call.cluster.drop("pool", found.poolid)
