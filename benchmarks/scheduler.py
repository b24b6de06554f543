"""Measure pure scheduling: one decision, a batch, why not, and how many more. Prints JSON.

python -m benchmarks.scheduler --hosts 10000
"""

from __future__ import annotations

import argparse
import dataclasses
import datetime
import json
import platform
import random
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import orjson

from common import config
from common.messages.facts import HostFacts, StorageFacts
from common.messages.scheduling import RequestSpec
from common.resources.aggregates import AggregateFacts
from scheduler import config as scheduler_config
from scheduler.decide import whatif
from scheduler.decide.choose import choose
from scheduler.explain.nearest import nearest
from scheduler.explain.outcome import Outcomes
from scheduler.hosts.columns import HostColumns
from scheduler.hosts.host import Host
from scheduler.hosts.memberships import by_host
from scheduler.service import load_filters, load_weighers

_NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)


def host(number: int, dice: random.Random) -> Host:
    """Return a node of 64 cores, 512 GiB and 4 TiB, partly full."""
    name = f"pve{number:05d}"
    facts = HostFacts(
        host=name,
        cluster=f"c{number // 32}",
        node=name,
        uuid=name,
        worker="w",
        availability_zone=f"z{number % 3}",
        observed_at=_NOW,
        vcpus=64,
        memory_mib=524_288,
        disk_gib=4096,
        vm_storage="local",
        storages=(StorageFacts("local", "lvmthin", False, True, 4096, 3000),),
        bridges=("vmbr0", "vmbr1"),
        images=("image",),
    )
    return Host(
        facts,
        capacity={"VCPU": 256, "MEMORY_MB": 524_288, "DISK_GB": 4096},
        used={
            "VCPU": dice.randrange(200),
            "MEMORY_MB": dice.randrange(500_000),
            "DISK_GB": dice.randrange(3000),
        },
    )


def varied(hosts: list[Host], dice: random.Random) -> list[Host]:
    """Return hosts as in a real cloud: hardly two racks have the same aggregates.

    Each host has its own address, load, cached images and vnets."""
    names = [host.name for host in hosts]
    racks = [
        AggregateFacts(f"r{first}", f"r{first}", {"rack": f"{first}"}, tuple(names[first:][:40]))
        for first in range(0, len(names), 40)
    ]
    kept = {"filter_tenant_id": "p"}
    others = [
        AggregateFacts(f"x{n}", f"x{n}", kept, tuple(dice.sample(names, len(names) // 4)))
        for n in range(6)
    ]
    of = by_host([*racks, *others])
    images = [f"image{number}" for number in range(30)]
    return [
        dataclasses.replace(
            host,
            memberships=of[host.name],
            facts=dataclasses.replace(
                host.facts,
                host_ip=f"10.{number >> 16}.{number >> 8 & 255}.{number & 255}",
                cpu_load=dice.random(),
                cached_images=tuple(sorted(dice.sample(images, 5))),
                bridges=("vmbr0", *(f"vnet{dice.randrange(50)}" for _ in range(3))),
            ),
        )
        for number, host in enumerate(hosts)
    ]


def down(host: Host) -> Host:
    """Return an unusable host: every second is forced down, the others have been silent for
    some time."""
    name = f"down-{host.name}"
    facts = dataclasses.replace(host.facts, host=name, node=name, uuid=name)
    number = int(host.name.removeprefix("pve"))
    return dataclasses.replace(
        host, facts=facts, forced_down=number % 2 == 0, silent_seconds=100.0 + number
    )


def milliseconds(work: Callable[[], Any], times: int) -> float:
    """Return the median of some runs."""
    found = []
    for _ in range(times):
        began = time.perf_counter()
        work()
        found.append(time.perf_counter() - began)
    return round(statistics.median(found) * 1000, 3)


def main(arguments: list[str] | None = None) -> int:
    """Measure, and print JSON."""
    parser = argparse.ArgumentParser(prog="benchmarks.scheduler")
    parser.add_argument("--hosts", type=int, default=10_000)
    parser.add_argument("--batch", type=int, default=100, help="servers in one request")
    parser.add_argument("--times", type=int, default=5)
    parser.add_argument("--alike", action="store_true", help="hosts that differ in room only")
    given = parser.parse_args(arguments)
    dice = random.Random(1)
    listed = [host(number, dice) for number in range(given.hosts)]
    listed = listed if given.alike else varied(listed, dice)
    hosts, half_down = HostColumns.of(listed), HostColumns.of([*listed, *map(down, listed)])
    conf = config.load([scheduler_config.register])
    filters, weighers = load_filters(conf), load_weighers(conf)
    request = RequestSpec("s", "p", "u", 2, 4096, 20, image_id="image", networks=("vmbr0",))
    batch = [dataclasses.replace(request, server_uuid=str(n)) for n in range(given.batch)]
    impossible = dataclasses.replace(request, memory_mib=600_000, availability_zone="z9")
    outcomes = Outcomes(conf, filters)
    # About half of all hosts have no room for it.
    some = dataclasses.replace(request, memory_mib=300_000)

    def stored(among: HostColumns, *, every: bool = False) -> bytes:
        """Return a decision as sent and stored; ``every``: with plain reasons of all hosts."""
        choice = choose(among, some, filters, weighers, keep=10)
        if every:
            for those in choice.refused.values():
                those.all()
        return orjson.dumps(outcomes.won(some, choice, 0, len(among)))

    def read() -> None:
        """Format the sentence of every host, which is normally done on demand."""
        for those in choose(hosts, some, filters, weighers, keep=10).refused.values():
            dict(those.pairs())

    picky = dataclasses.replace(
        request,
        extra_specs={"aggregate_instance_extra_specs:rack": "<or> 40 <or> 80"},
        hints={"build_near_host_ip": "10.0.0.1"},
    )
    refused = choose(hosts, some, filters, weighers, keep=10)
    found = {
        "hosts": given.hosts,
        "python": platform.python_version(),
        "one_decision_ms": milliseconds(
            lambda: choose(hosts, request, filters, weighers, keep=10), given.times
        ),
        "one_picky_decision_ms": milliseconds(
            lambda: choose(hosts, picky, filters, weighers, keep=10), given.times
        ),
        "reasons_included_ms": milliseconds(lambda: stored(hosts, every=True), given.times),
        "reasons_included_and_as_many_down_ms": milliseconds(
            lambda: stored(half_down, every=True), given.times
        ),
        "one_decision_and_as_many_down_ms": milliseconds(
            lambda: choose(half_down, request, filters, weighers, keep=10), given.times
        ),
        "with_every_sentence_written_ms": milliseconds(read, given.times),
        f"batch_of_{given.batch}_ms": milliseconds(
            lambda: list(whatif.place(hosts, batch, filters, weighers, keep=10)), 1
        ),
        "nearest_change_ms": milliseconds(
            lambda: nearest(hosts, impossible, filters), given.times
        ),
        "keep_a_decision_ms": milliseconds(lambda: stored(hosts), given.times),
        "kept_kib": round(len(stored(hosts)) / 1024, 1),
        "refused": {name: len(those) for name, those in refused.refused.items()},
        "capacity_ms": milliseconds(lambda: whatif.capacity(hosts, request, filters), given.times),
    }
    json.dump(found, sys.stdout, indent=2)
    sys.stdout.write("\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
