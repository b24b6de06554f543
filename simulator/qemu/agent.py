"""The guest agent: no answer while the guest boots, then that of a small Linux."""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from typing import Any

from simulator.engine import Sleep, Work
from simulator.errors import PveError
from simulator.propstring import split
from simulator.qemu.network import parse_net
from simulator.request.call import Call
from simulator.state.model import Vm

PING_TIMEOUT_SECONDS = 3.0
_SYSTEM = {"id": "linux", "name": "Linux", "kernel-release": "6.1.0", "machine": "x86_64"}


def _enabled(vm: Vm) -> bool:
    return split(vm.config.get("agent", "0"), "enabled").get("enabled") == "1"


def _answer(call: Call, result: Callable[[Vm], Any]) -> Work:
    vm = call.vm()
    if not _enabled(vm):
        raise PveError("No QEMU guest agent configured")
    if not vm.running:
        raise PveError(f"VM {vm.vmid} is not running")
    silent = list(call.cluster.faults.standing("guest-silent", vmid=vm.vmid))
    if silent or call.cluster.engine.clock.now() < vm.agent_ready:
        yield Sleep(PING_TIMEOUT_SECONDS)
        raise PveError("QEMU guest agent is not running")
    return {"result": result(vm)}


def ping(call: Call) -> Work:
    """`agent/ping`."""
    return (yield from _answer(call, lambda vm: {}))


def host_name(call: Call) -> Work:
    """`agent/get-host-name`."""
    return (yield from _answer(call, lambda vm: {"host-name": vm.config.get("name", "localhost")}))


def system(call: Call) -> Work:
    """`agent/get-osinfo`."""
    return (yield from _answer(call, lambda vm: dict(_SYSTEM)))


def frozen(call: Call) -> Work:
    """`agent/fsfreeze-status`: always thawed outside of backups."""
    return (yield from _answer(call, lambda vm: "thawed"))


def freeze(call: Call) -> Work:
    """`agent/fsfreeze-freeze` and `-thaw`: the number of file systems."""
    return (yield from _answer(call, lambda vm: 1))


def password(call: Call) -> Work:
    """`agent/set-user-password`: succeeds for any."""
    return (yield from _answer(call, lambda vm: {}))


def execute(call: Call) -> Work:
    """`agent/exec`: fails, as the guest has no programs."""
    yield from _answer(call, lambda vm: {})
    raise PveError(
        "Agent error: Guest agent command failed, error was 'No such file or directory'"
    )


def read_file(call: Call) -> Work:
    """`agent/file-read`: fails, as the guest has no files."""
    yield from _answer(call, lambda vm: {})
    name = call.get("file")
    raise PveError(f"Agent error: failed to open file '{name}' (mode: 'r')")


def interfaces(call: Call) -> Work:
    """`agent/network-get-interfaces`: loopback and one interface per network card."""
    return (yield from _answer(call, _interfaces))


def _interfaces(vm: Vm) -> list[dict[str, Any]]:
    loopback = [("ipv4", "127.0.0.1", 8), ("ipv6", "::1", 128)]
    found = [_interface("lo", "00:00:00:00:00:00", loopback)]
    cards = sorted(
        (name for name in vm.config if name.startswith("net")), key=lambda n: int(n[3:])
    )
    for number, name in enumerate(cards):
        mac = parse_net(vm.config[name]).get("macaddr", "00:00:00:00:00:00").lower()
        addresses = []
        given = split(vm.config.get(f"ipconfig{name[3:]}", ""), "ip").get("ip", "dhcp")
        if "/" in given:
            one = ipaddress.ip_interface(given)
            addresses.append(("ipv4", str(one.ip), one.network.prefixlen))
        else:
            low = vm.vmid % 65000
            addresses.append(("ipv4", f"10.{99 + number}.{low // 254}.{low % 254 + 1}", 16))
        addresses.append(("ipv6", _link_local(mac), 64))
        found.append(_interface(f"eth{number}", mac, addresses))
    return found


def _link_local(mac: str) -> str:
    parts = [int(part, 16) for part in mac.split(":")]
    parts[0] ^= 2
    octets = [*parts[:3], 0xFF, 0xFE, *parts[3:]]
    return str(ipaddress.IPv6Address(bytes([0xFE, 0x80, *[0] * 6, *octets])))


def _interface(name: str, mac: str, addresses: list[tuple[str, str, int]]) -> dict[str, Any]:
    counters = ["bytes", "dropped", "errs", "packets"]
    return {
        "name": name,
        "hardware-address": mac,
        "ip-addresses": [
            {"ip-address-type": kind, "ip-address": address, "prefix": prefix}
            for kind, address, prefix in addresses
        ],
        "statistics": {f"{way}-{what}": 0 for way in ("rx", "tx") for what in counters},
    }
