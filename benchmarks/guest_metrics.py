"""What a scrape of the numbers of many servers costs: its bytes, its CPU, the agent's memory.

``python -m benchmarks.guest_metrics [SERVERS …]``
"""

from __future__ import annotations

import gzip
import json
import resource
import sys
import time

from common import ids
from common.messages.guests import GuestOwner
from common.metrics import exposition
from compute.hypervisor.proxmox.observe import resources
from compute.observed.guest_metrics import GuestMetrics


def listed(count: int) -> list[dict[str, object]]:
    """Return VMs as `/cluster/resources` lists them."""
    return [
        {
            **{"type": "qemu", "id": f"qemu/{vmid}", "vmid": vmid, "node": "pve1", "template": 0},
            **{"status": "running", "name": f"web-{vmid}", "cpu": 0.0123 * (vmid % 70)},
            **{"maxcpu": 4, "maxmem": 8 << 30, "mem": (3 << 30) + vmid, "maxdisk": 40 << 30},
            **{"disk": 0, "netin": 123_456_789 + vmid, "netout": 987_654_321 + vmid},
            **{"diskread": 55_555_555_555, "diskwrite": 66_666_666_666 + vmid, "uptime": 86_400},
        }
        for vmid in range(100_000, 100_000 + count)
    ]


def measure(count: int) -> dict[str, float]:
    """Return the costs of so many servers."""
    answer = listed(count)
    owners = [
        GuestOwner("c1", 100_000 + one, ids.new_uuid(), ids.new_uuid().replace("-", ""))
        for one in range(count)
    ]
    metrics = GuestMetrics(lambda: owners)
    began = time.process_time()
    metrics.update("c1", resources.guests(answer))
    read = time.process_time() - began
    metrics.refresh()
    began = time.process_time()
    text = exposition.text()
    scrape = time.process_time() - began
    return {
        "servers": count,
        "scrape_mb": round(len(text) / 1e6, 2),
        "scrape_mb_gzipped": round(len(gzip.compress(text, 5)) / 1e6, 3),
        "scrape_cpu_ms": round(scrape * 1000, 1),
        "refresh_cpu_ms": round(read * 1000, 1),
        "peak_mib": round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024),
    }


if __name__ == "__main__":
    numbers = [int(one) for one in sys.argv[1:]] or [100, 1000, 5000]
    print(json.dumps([measure(number) for number in numbers], indent=2))
