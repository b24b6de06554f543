"""Actions on many guests: `/cluster/bulk-action/guest/…`, and a node's `startall` etc.

One worker starts one task per guest, each after the previous one has ended.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from simulator.digits import is_digits
from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.qemu import migrate as one_migrate
from simulator.qemu import power
from simulator.request.call import Call
from simulator.state.model import Node, Vm
from simulator.state.tasks import Job

LOOK_AGAIN_SECONDS = 0.5
_TIMEOUT = "180"


@dataclass(frozen=True)
class _Action:
    """A bulk action: which guests, with what privilege, and its log line."""

    privilege: str
    act: Callable[[Call], str]
    needed: Callable[[Vm], bool]
    given: Callable[[Call], dict[str, str]]
    each: Callable[[Call, Vm], str]


def _off(vm: Vm) -> bool:
    return not vm.running and not vm.template


def _on(vm: Vm) -> bool:
    return vm.running


def _guest(vm: Vm) -> bool:
    return not vm.template


def _nothing(_call: Call) -> dict[str, str]:
    return {}


def _how_to_stop(call: Call) -> dict[str, str]:
    timeout = call.get("timeout", _TIMEOUT)
    return {"timeout": timeout, "forceStop": call.get("force-stop", "1")}


def _how_to_suspend(call: Call) -> dict[str, str]:
    given = {"todisk": call.get("to-disk", "0"), "statestorage": call.get("statestorage")}
    return {name: text for name, text in given.items() if text}


def _how_to_move(call: Call) -> dict[str, str]:
    online = call.get("online", "1")
    given = {"target": call.get("target"), "online": online}
    return given | ({"with-local-disks": "1"} if call.flag("with-local-disks") else {})


_START = _Action(
    "VM.PowerMgmt", power.start, _off, _nothing, lambda call, vm: f"Starting VM {vm.vmid}"
)
_SHUTDOWN = _Action(
    "VM.PowerMgmt",
    power.shutdown,
    _on,
    _how_to_stop,
    lambda call, vm: (
        f"Shutting down VM {vm.vmid} (Timeout = {call.get('timeout', _TIMEOUT)} seconds)"
    ),
)
_SUSPEND = _Action(
    "VM.PowerMgmt",
    power.suspend,
    _on,
    _how_to_suspend,
    lambda call, vm: f"Suspending VM {vm.vmid}",
)
_MIGRATE = _Action(
    "VM.Migrate",
    one_migrate.migrate,
    _guest,
    _how_to_move,
    lambda call, vm: f"Migrating VM {vm.vmid}",
)


def index(_call: Call) -> list[dict[str, str]]:
    """`GET /cluster/bulk-action`."""
    return [{"name": "guest"}]


def guest_index(_call: Call) -> list[dict[str, str]]:
    """`GET /cluster/bulk-action/guest`."""
    return [{"name": name} for name in ("start", "shutdown", "migrate", "suspend")]


def start(call: Call) -> str:
    """`POST …/guest/start`."""
    return _cluster(call, "bulk-start", _START, "Starting guests", "start:")


def shutdown(call: Call) -> str:
    """`POST …/guest/shutdown`."""
    return _cluster(call, "bulk-shutdown", _SHUTDOWN, "Shutting down guests", "shutdown:")


def suspend(call: Call) -> str:
    """`POST …/guest/suspend`."""
    return _cluster(call, "bulk-suspend", _SUSPEND, "Suspending guests", "suspend:")


def migrate(call: Call) -> str:
    """`POST …/guest/migrate`; its failure message has no colon, unlike the others."""
    title = f"Migrating guests to {call.get('target')}"
    return _cluster(call, "bulk-migrate", _MIGRATE, title, "migrate")


def _vmids(call: Call) -> list[int]:
    text = call.get("vms")
    for separator in ("\0", ";", " "):
        text = text.replace(separator, ",")
    return sorted({int(one) for one in text.split(",") if is_digits(one)})


def _cluster(call: Call, kind: str, action: _Action, title: str, verb: str) -> str:
    """Act on the named guests wherever they are; skip those that don't exist."""
    wanted = _vmids(call) or sorted(call.cluster.vms)
    for vmid in wanted:
        call.cluster.access.require(call.who, f"/vms/{vmid}", action.privilege)

    def body(job: Job) -> Work:
        job.log(f"{title}: {', '.join(str(vmid) for vmid in wanted)}")
        found = [call.cluster.vms[vmid] for vmid in wanted if vmid in call.cluster.vms]
        failed = yield from _all(call, job, action, found, "WARN: {why}")
        if failed:
            raise PveError(f"Some guests failed to {verb} {', '.join(failed)}")

    return _launch(call, call.cluster.node(call.contacted), kind, body)


def _launch(call: Call, node: Node, kind: str, body: Callable[[Job], Work]) -> str:
    upid = call.cluster.tasks.start(node, kind, "", call.who, body)
    call.started.append(upid)
    return upid


def _all(call: Call, job: Job, action: _Action, vms: list[Vm], failure: str) -> Work:
    """Act on one guest after the other; return those that failed."""
    failed = []
    for vm in vms:
        if call.cluster.vms.get(vm.vmid) is not vm or not action.needed(vm):
            continue
        job.log(action.each(call, vm))
        why = yield from _ended(call, action, vm)
        if why:
            job.log(failure.format(why=why, vmid=vm.vmid))
            failed.append(str(vm.vmid))
    return failed


def _ended(call: Call, action: _Action, vm: Vm) -> Work:
    """Wait for the task of one guest; return its error, or an empty text."""
    params = {"node": vm.node, "vmid": str(vm.vmid), **action.given(call)}
    path = f"/nodes/{vm.node}/qemu/{vm.vmid}"
    try:
        upid = action.act(Call(call.cluster, call.who, "POST", path, params, call.contacted))
    except PveError as error:
        return f"{error.status} {error.text}"
    task = call.cluster.tasks.tasks[upid]
    while task.running:
        yield Sleep(LOOK_AGAIN_SECONDS)
    return "" if task.exitstatus == "OK" or task.warnings else task.exitstatus


# --- of one node


def start_all(call: Call) -> str:
    """`POST …/startall`: start what starts with the node, or with `force` all that is named."""

    def wanted(vm: Vm) -> bool:
        return call.flag("force") or vm.config.get("onboot") == "1"

    return _node(call, "startall", _START, wanted, "Starting VM {vmid} failed: {why}")


def stop_all(call: Call) -> str:
    """`POST …/stopall`."""
    return _node(call, "stopall", _SHUTDOWN, _on, "VM {vmid} not stopped - {why}")


def suspend_all(call: Call) -> str:
    """`POST …/suspendall`: suspend to disk."""
    call.params["to-disk"] = "1"
    return _node(call, "suspendall", _SUSPEND, _on, "Can't suspend VM {vmid} - {why}")


def migrate_all(call: Call) -> str:
    """`POST …/migrateall`, which requires the number of parallel migrations."""
    options = call.cluster.options
    if not any((call.get("max-workers"), call.get("maxworkers"), options.get("max_workers"))):
        raise PveError(
            "either 'max-workers' parameter or max_workers in datacenter.cfg must be set!"
        )
    return _node(call, "migrateall", _MIGRATE, _guest, "{why}")


def _node(
    call: Call, kind: str, action: _Action, wanted: Callable[[Vm], bool], failure: str
) -> str:
    """Act on the guests of one node; the task ends OK even if some guests fail."""
    named = _vmids(call)
    if not call.cluster.access.has(call.who, "/", action.privilege):
        if not named:
            raise PveError(f"Permission check failed (/, {action.privilege})", 403)
        for vmid in named:
            call.cluster.access.require(call.who, f"/vms/{vmid}", action.privilege)

    def body(job: Job) -> Work:
        found = [
            vm
            for vmid, vm in sorted(call.cluster.vms.items())
            if vm.node == call.node and wanted(vm) and (not named or vmid in named)
        ]
        yield from _all(call, job, action, found, failure)

    return _launch(call, call.home(), kind, body)
