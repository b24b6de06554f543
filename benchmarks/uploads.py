"""Measure uploads of images: ``python -m benchmarks.uploads``, JSON.

It starts an embedded cloud without a hypervisor, has several clients upload images at once, each
from a socket of its own, and waits until all are active: so each byte is received, hashed twice,
written, fetched by the agent and read. ``copy`` is what as many plain copies of the same files
take on the same disk, each with its fsync.

Client, API and agent share the machine's cores, which the hashes and the copies between them fill.

Fails where the process grows by 64 MiB or more while it takes uploads, or where they are slower
than a gigabit network (``--no-bounds``: never).
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import requests

from benchmarks.reading.processes import tree
from tests.fixtures import null
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.waiting import eventually

GROWTH_MIB = 64.0
LEAST_MIB_PER_SECOND = 110.0
_PIECE = 1 << 20


class Client:
    """Uploads images as a user, through the Image API."""

    def __init__(self, cloud: EmbeddedCloud) -> None:
        self._url = f"{cloud.base_url}/image/v2/images"
        token = cloud.connection("micronova").auth_token
        self._headers = {"X-Auth-Token": str(token)}

    def make(self) -> str:
        """Make an image without data."""
        body = {"disk_format": "raw", "container_format": "bare"}
        answer = requests.post(self._url, json=body, headers=self._headers, timeout=60)
        answer.raise_for_status()
        return str(answer.json()["id"])

    def send(self, image_id: str, file: Path) -> None:
        """Send a file as an image's data; it is active then."""
        headers = {**self._headers, "Content-Type": "application/octet-stream"}
        with file.open("rb") as data:
            answer = requests.put(
                f"{self._url}/{image_id}/file", data=_pieces(data), headers=headers, timeout=600
            )
        assert answer.status_code == 204, answer.text
        eventually(lambda: self._status(image_id) == "active")

    def delete(self, image_id: str) -> None:
        """Delete an image."""
        requests.delete(
            f"{self._url}/{image_id}", headers=self._headers, timeout=60
        ).raise_for_status()

    def _status(self, image_id: str) -> str:
        answer = requests.get(f"{self._url}/{image_id}", headers=self._headers, timeout=60)
        return str(answer.json()["status"])


def _pieces(file: Any) -> Iterator[bytes]:
    while data := file.read(_PIECE):
        yield data


class Memory:
    """The most memory that a process had while this is open, MiB."""

    def __init__(self, pid: int) -> None:
        self._pid, self._over = pid, threading.Event()
        self.before = self.most = self._now()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Memory:
        self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        self._over.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.most = max(self.most, self._now())

    def _now(self) -> float:
        status = Path(f"/proc/{self._pid}/status").read_text()
        line = next(one for one in status.splitlines() if one.startswith("RssAnon:"))
        return int(line.split()[1]) / 1024


def at_once(clients: int, work: Callable[[int], None], count: int) -> float:
    """Do all, as many at a time as there are clients; return the seconds."""
    began = time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(clients) as pool:
        list(pool.map(work, range(count)))
    return time.monotonic() - began


def copies(folder: Path, source: Path, clients: int, count: int) -> float:
    """Copy a file to the same disk; return the seconds."""

    def copy(number: int) -> None:
        target = folder / f"copy-{number}"
        with source.open("rb") as data, target.open("wb") as file:
            for piece in _pieces(data):
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        target.unlink()

    return at_once(clients, copy, count)


def measure(folder: Path, clients: int, count: int, mib: int) -> dict[str, Any]:
    """Run it; return what is printed."""
    source = folder / "source"
    with source.open("wb") as file:
        for _ in range(mib):
            file.write(os.urandom(_PIECE))
    copied = copies(folder, source, clients, count)
    with embedded_cloud(folder / "state", audited=False, driver=null.DRIVER, nodes=1) as cloud:
        client = Client(cloud)
        # What is made once, whatever follows.
        first = client.make()
        client.send(first, source)
        client.delete(first)
        images = [client.make() for _ in range(count)]
        with Memory(_largest(cloud)) as memory:
            taken = at_once(clients, lambda number: client.send(images[number], source), count)
    total = mib * count
    return {
        "uploads": count,
        "clients": clients,
        "mib_each": mib,
        "seconds": round(taken, 1),
        "mib_per_second": round(total / taken, 1),
        "copy_mib_per_second": round(total / copied, 1),
        "share_of_copy": round(copied / taken, 2),
        "memory_before_mib": round(memory.before, 1),
        "memory_growth_mib": round(memory.most - memory.before, 1),
    }


def _largest(cloud: EmbeddedCloud) -> int:
    """Return the process that serves the APIs: the largest one."""

    def resident(pid: int) -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])

    return max(tree(cloud.process.pid), key=resident)


def main() -> int:
    """Print JSON."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--uploads", type=int, default=50)
    parser.add_argument("--clients", type=int, default=8)
    parser.add_argument("--mib", type=int, default=100, help="size of each image")
    parser.add_argument("--folder", help="on the disk to be measured")
    parser.add_argument("--no-bounds", action="store_true")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=given.folder) as folder:
        found = measure(Path(folder), given.clients, given.uploads, given.mib)
    print(json.dumps(found, indent=2))
    well = (
        found["memory_growth_mib"] < GROWTH_MIB and found["mib_per_second"] >= LEAST_MIB_PER_SECOND
    )
    return 0 if well or given.no_bounds else 1


if __name__ == "__main__":
    sys.exit(main())
