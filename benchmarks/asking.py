"""Client processes of the placement benchmark: load, claim, search.

They share the machine with what they measure, so they cost as little as they can: requests are
written to keep-alive sockets as bytes, and of an answer only its status and length are read.
"""

from __future__ import annotations

import json
import multiprocessing
import socket
import statistics
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import orjson

CLIENTS = 8
HEADERS = (
    "Host: 127.0.0.1\r\nX-Auth-Token: admin\r\nX-Roles: admin,member,reader\r\n"
    "OpenStack-API-Version: placement 1.39\r\nAccept: application/json\r\n"
)
TRAITS = (
    *("HW_CPU_X86_VMX", "HW_CPU_X86_AVX", "HW_CPU_X86_AVX2", "HW_CPU_X86_SSE"),
    *("HW_CPU_X86_SSE2", "COMPUTE_NODE", "STORAGE_DISK_SSD", "COMPUTE_VOLUME_EXTEND"),
    *("COMPUTE_NET_ATTACH_INTERFACE", "COMPUTE_IMAGE_TYPE_QCOW2"),
)
GROUPS = [str(uuid.uuid5(uuid.NAMESPACE_DNS, str(number))) for number in range(50)]
TOTALS = {"VCPU": 100_000, "MEMORY_MB": 200_000_000, "DISK_GB": 1_000_000}
WANTED = "VCPU:2,MEMORY_MB:4096,DISK_GB:20"
TAKEN = {"VCPU": 2, "MEMORY_MB": 4096, "DISK_GB": 20}
QUERIES = {
    "plain": f"resources={WANTED}&limit=1000",
    "required": f"resources={WANTED}&limit=1000&required=HW_CPU_X86_AVX2",
    "member_of": f"resources={WANTED}&limit=1000&member_of={GROUPS[0]}",
    "two groups": "resources1=VCPU:2,MEMORY_MB:4096&resources2=DISK_GB:20&group_policy=none"
    "&limit=1000",
    "plain, limit=10": f"resources={WANTED}&limit=10",
}
_LENGTH, _END = b"content-length:", b"\r\n\r\n"


class Client:
    """One keep-alive connection."""

    def __init__(self, port: int) -> None:
        self.failures = 0
        self._port = port
        self._socket: socket.socket | None = None

    def ask(self, method: str, path: str, body: Any = None) -> tuple[int, bytes]:
        """Make a request and return the status and the body of its answer."""
        head = f"{method} {path} HTTP/1.1\r\n{HEADERS}"
        raw = b""
        if body is not None:
            raw = orjson.dumps(body)
            head += f"Content-Type: application/json\r\nContent-Length: {len(raw)}\r\n"
        request = f"{head}\r\n".encode() + raw
        try:
            return self._exchange(request)
        except ConnectionError:
            # The server may have closed an idle connection.
            self._close()
            return self._exchange(request)

    def must(self, method: str, path: str, body: Any = None) -> bytes:
        """Make a request that must succeed."""
        for _ in range(5):
            status, text = self.ask(method, path, body)
            if status < 300:
                return text
            if status < 500:
                break
            # The original's loses a race now and then, and works the second time.
            self.failures += 1
        raise RuntimeError(f"{method} {path}: {status} {text[:500]!r}")

    def _close(self) -> None:
        if self._socket is not None:
            self._socket.close()
        self._socket = None

    def _exchange(self, request: bytes) -> tuple[int, bytes]:
        connection = self._socket
        if connection is None:
            connection = self._socket = socket.create_connection(
                ("127.0.0.1", self._port), timeout=600
            )
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        connection.sendall(request)
        text = b""
        while _END not in text:
            text += self._more(connection)
        head, _, rest = text.partition(_END)
        status = int(head[9:12])
        head = head.lower()
        place = head.find(_LENGTH)
        length = 0
        if place >= 0:
            length = int(head[place + len(_LENGTH) :].partition(b"\r")[0])
        elif status != 204:
            raise RuntimeError(f"an answer of unknown length: {head!r}")
        parts, missing = [rest], length - len(rest)
        while missing > 0:
            parts.append(self._more(connection))
            missing -= len(parts[-1])
        if b"connection: close" in head:
            self._close()
        return status, b"".join(parts)

    @staticmethod
    def _more(connection: socket.socket) -> bytes:
        text = connection.recv(1 << 20)
        if not text:
            raise ConnectionError("the server closed the connection")
        return text


def in_processes(work: Callable[[int], Any], clients: int = CLIENTS) -> list[Any]:
    """Run work(number) in so many processes at once and return their results."""
    with multiprocessing.get_context("fork").Pool(clients) as pool:
        return pool.map(work, range(clients), chunksize=1)


def _stock() -> dict[str, Any]:
    stock = {"reserved": 0, "min_unit": 1, "step_size": 1, "allocation_ratio": 1.0}
    inventories = {n: {**stock, "total": t, "max_unit": t} for n, t in TOTALS.items()}
    return {"resource_provider_generation": 0, "inventories": inventories}


def load(port: int, uuids: Sequence[str], number: int) -> dict[str, float]:
    """Create every eighth provider, with all it has.

    Return how many answers were 5xx, and the seconds of CPU that asking took.
    """
    client = Client(port)
    stock = _stock()
    for index in range(number, len(uuids), CLIENTS):
        one = uuids[index]
        path = f"/resource_providers/{one}"
        client.must("POST", "/resource_providers", {"name": f"node-{index}", "uuid": one})
        client.must("PUT", f"{path}/inventories", stock)
        client.must("PUT", f"{path}/traits", {"resource_provider_generation": 1, "traits": TRAITS})
        some = [GROUPS[(index + step) % len(GROUPS)] for step in range(5)]
        body = {"resource_provider_generation": 2, "aggregates": some}
        client.must("PUT", f"{path}/aggregates", body)
    return {"failures": client.failures, "cpu_s": time.process_time()}


def claim(port: int, uuids: Sequence[str], seconds: float, number: int) -> dict[str, int]:
    """Claim on the providers in turn for so long; return how often each status came."""
    client = Client(port)
    statuses: dict[str, int] = {}
    end = time.perf_counter() + seconds
    index = number
    while time.perf_counter() < end:
        body = {
            "allocations": {uuids[index % len(uuids)]: {"resources": TAKEN}},
            "project_id": "project",
            "user_id": "user",
            "consumer_generation": None,
            "consumer_type": "INSTANCE",
        }
        status, _ = client.ask("PUT", f"/allocations/{uuid.uuid4()}", body)
        statuses[str(status)] = statuses.get(str(status), 0) + 1
        index += CLIENTS
    return statuses


def searches(port: int, query: str, seconds: float) -> dict[str, float]:
    """Ask for candidates, one at a time, for so long (three times at least)."""
    client = Client(port)
    path = f"/allocation_candidates?{query}"
    for _ in range(4):
        text = client.must("GET", path)
    times: list[float] = []
    end = time.perf_counter() + seconds
    while len(times) < 3 or time.perf_counter() < end:
        start = time.perf_counter()
        client.must("GET", path)
        times.append(time.perf_counter() - start)
    value = json.loads(text)
    return {
        "p50_ms": round(statistics.median(times) * 1000, 3),
        "candidates": len(value["allocation_requests"]),
        "bytes": len(text),
        "json_ms": _serialising_ms(json.dumps, value),
        "orjson_ms": _serialising_ms(orjson.dumps, value),
    }


def _serialising_ms(dumps: Callable[[Any], Any], value: Any) -> float:
    times = []
    for _ in range(15):
        start = time.perf_counter()
        dumps(value)
        times.append(time.perf_counter() - start)
    return round(statistics.median(times) * 1000, 4)


def rate(work: Callable[[int], Any], seconds: float) -> dict[str, Any]:
    """Return claims per second and failures of what eight clients do."""
    statuses: dict[str, int] = {}
    for one in in_processes(work):
        for status, count in one.items():
            statuses[status] = statuses.get(status, 0) + count
    return {"per_second": round(statuses.get("204", 0) / seconds, 1), "statuses": statuses}
