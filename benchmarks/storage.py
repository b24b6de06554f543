"""Measure many builds at once on one storage, as JSON: ``python -m benchmarks.storage --help``.

It starts a simulated cluster with real lock semantics in real time: allocations on a storage hold
its lock, and a wait of ten seconds fails. Then as many builds as asked begin at the same moment on
one node and one storage, first with the default storage queue, then with fixed widths. For each it
prints how long all took, how many failed, and how often Proxmox VE gave up on a lock. The exit
code is 0 when none failed and the queue was within 10 % of the best width.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import json
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from oslo_config import cfg

from common import clock, config, ids
from common.context import internal
from common.messages.commands import Build, ConfigDrive, Image, Placed, Template
from common.messages.reports import Outcome, Working
from common.resources.states import ResourceType
from compute import config as compute_config
from compute.commands import build
from compute.commands.job import Job, MayStart
from compute.hypervisor.proxmox import settings
from compute.hypervisor.proxmox.driver import ProxmoxHypervisor

NODE, STORAGE, IMAGE = "pve1", "local", "cirros"
TEMPLATE_VMID, FIRST_VMID = 190_000, 100_000
DEADLINE_SECONDS = 900
START_SECONDS = 30.0
FIXED = (1, 2, 4, 8, 16, 32)


class Cluster:
    """A simulated cluster in a process of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.url = json.loads((folder / "endpoints.json").read_text())[0]["url"]
        token = json.loads((folder / "token.json").read_text())
        self.token_file = folder / "agent.token"
        self.token_file.write_text(f"{token['tokenid']}={token['secret']}\n")
        self.token_file.chmod(0o600)
        self._context = ssl.create_default_context(cafile=str(folder / "ca.pem"))

    def reset(self) -> None:
        """Delete all VMs, volumes and tasks."""
        request = urllib.request.Request(f"{self.url}/_sim/reset", method="POST", data=b"{}")
        with urllib.request.urlopen(request, context=self._context, timeout=30):
            return


@contextlib.contextmanager
def cluster(speed: float) -> Iterator[Cluster]:
    """Run a cluster until the block ends."""
    with tempfile.TemporaryDirectory() as folder:
        state = Path(folder) / "state"
        command = [sys.executable, "-m", "simulator", "--tls", "--port", "0", "--nodes", "1"]
        command += ["--speed", str(speed), "--state-dir", str(state)]
        process = subprocess.Popen(command)
        try:
            deadline = time.monotonic() + START_SECONDS
            while not (state / "endpoints.json").exists():
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError("the simulator did not start")
                time.sleep(0.05)
            yield Cluster(state)
        finally:
            process.terminate()
            process.wait(10)


def configuration(where: Cluster, options: Sequence[str]) -> cfg.ConfigOpts:
    """Return the worker's configuration, with further lines for the cluster."""
    lines = [
        "[proxmox]",
        "clusters = c1",
        "[proxmox:c1]",
        f"endpoints = {where.url}",
        f"token_file = {where.token_file}",
        f"ca_file = {where.folder / 'ca.pem'}",
        f"vm_storage = {STORAGE}",
        f"iso_storage = {STORAGE}",
        *options,
    ]
    path = where.folder / "micronova.conf"
    path.write_text("\n".join(lines) + "\n")
    return config.load([compute_config.register], files=[str(path)])


class Alone:
    """The ledger of an agent that nobody takes over from; see ``compute.commands.job.Ledger``."""

    def accepts(self, worker: str) -> bool:
        """Return that every command is carried out."""
        return True

    def is_over(self, worker: str) -> bool:
        """Return that its tenure lasts."""
        return False

    def may_undo(self, worker: str, working: Working) -> bool:
        """Return that the attempt is its own."""
        return True

    def may_start(self, worker: str, working: Working) -> MayStart:
        """Return that VMs may run."""
        return MayStart.YES


def a_build(number: int) -> Build:
    """Return a build of 2 GiB with a config drive, cloned from the image's template."""
    server = ids.new_uuid()
    placed = Placed(NODE, "c1", NODE, FIRST_VMID + number)
    return Build(
        number + 1,
        1,
        ResourceType.SERVER,
        server,
        placed,
        clock.after(DEADLINE_SECONDS),
        name=f"web{number}",
        hostname=f"web{number}",
        vcpus=1,
        memory_mib=64,
        disk_gib=2,
        image=Image(ids.named("image", IMAGE), IMAGE, f"shared:import/{IMAGE}.qcow2", 1 << 24),
        template=Template(TEMPLATE_VMID, NODE, STORAGE),
        config_drive=ConfigDrive({"uuid": server}, {"links": []}, {}),
    )


def run(where: Cluster, count: int, options: Sequence[str]) -> dict[str, Any]:
    """Run all builds at once, in an empty cluster with only the template."""
    where.reset()
    conf = configuration(where, options)
    hypervisor = ProxmoxHypervisor(conf, settings.clusters(conf)[0])
    try:
        first = _carry_out(hypervisor, a_build(count))
        if not first.ok:
            raise RuntimeError(f"the first build failed: {first.failure}")
        gate = threading.Barrier(count + 1)
        with concurrent.futures.ThreadPoolExecutor(count) as pool:
            futures = [
                pool.submit(_when_all_are_there, gate, hypervisor, a_build(number))
                for number in range(count)
            ]
            gate.wait()
            began = time.monotonic()
            ended = [future.result() for future in futures]
        took = max(at for at, _ in ended) - began
        outcomes = [outcome for _, outcome in ended]
        lines = hypervisor.shared.storage_queue
        return {
            "seconds": round(took, 2),
            "builds_per_second": round(count / took, 2),
            "failed": sum(not outcome.ok for outcome in outcomes),
            "lock_timeouts": _lock_timeouts(hypervisor),
            "width_at_the_end": lines.limit((NODE, STORAGE)),
        }
    finally:
        hypervisor.close()


def _when_all_are_there(
    gate: threading.Barrier, hypervisor: ProxmoxHypervisor, command: Build
) -> tuple[float, Outcome]:
    gate.wait()
    outcome = _carry_out(hypervisor, command)
    return time.monotonic(), outcome


def _carry_out(hypervisor: ProxmoxHypervisor, command: Build) -> Outcome:
    job = Job(command, internal(), lambda report: None, Alone())
    return build.build(job, hypervisor.machine(job), command)


def _lock_timeouts(hypervisor: ProxmoxHypervisor) -> int:
    """Return the number of tasks that failed for a lock that was not free in time."""
    listed = hypervisor.shared.client.get(f"nodes/{NODE}/tasks", source="all", limit=5000)
    return sum("got timeout" in str(one.get("status", "")) for one in listed)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the result."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--builds", type=int, default=50, help="how many at once")
    parser.add_argument("--speed", type=float, default=1.0, help="of the simulated cluster")
    parser.add_argument("--rounds", type=int, default=1, help="the best round counts")
    parser.add_argument("--fixed", type=int, nargs="*", default=FIXED, help="widths to compare")
    parsed = parser.parse_args(arguments)
    rounds = range(parsed.rounds)
    with cluster(parsed.speed) as where:
        learnt = _best([run(where, parsed.builds, ()) for _ in rounds])
        fixed = {
            width: _best([run(where, parsed.builds, _fixed(width)) for _ in rounds])
            for width in parsed.fixed
        }
    result: dict[str, Any] = {"builds": parsed.builds, "learnt": learnt, "fixed": fixed}
    clean = {width: one for width, one in fixed.items() if not one["failed"]}
    if clean:
        best = max(clean, key=lambda width: float(clean[width]["builds_per_second"]))
        share = learnt["builds_per_second"] / clean[best]["builds_per_second"]
        result |= {"best_fixed": best, "share_of_best": round(share, 3)}
    json.dump(result, sys.stdout, indent=2)
    sys.stdout.write("\n")
    good = not learnt["failed"] and result.get("share_of_best", 1.0) >= 0.9
    return 0 if good else 1


def _fixed(width: int) -> tuple[str, ...]:
    return (f"local_storage_slots = {width}", "most_storage_slots = 0")


def _best(rounds: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the fastest round, with the failures of all."""
    found = dict(min(rounds, key=lambda one: float(one["seconds"])))
    found["failed"] = max(one["failed"] for one in rounds)
    found["lock_timeouts"] = max(one["lock_timeouts"] for one in rounds)
    return found


if __name__ == "__main__":
    sys.exit(main())
