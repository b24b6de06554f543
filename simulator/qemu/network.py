"""Network cards: MAC addresses and the text of a card."""

from __future__ import annotations

import secrets

from simulator import propstring
from simulator.request.vmschema import NET_MODELS


def parse_net(text: str) -> dict[str, str]:
    """Return a card's properties, with `model` and `macaddr` from either notation."""
    found = propstring.split(text, "model")
    for model in NET_MODELS:
        if model in found:
            found["macaddr"] = found.pop(model)
            found["model"] = model
            break
    return found


def print_net(net: dict[str, str]) -> str:
    """Return a card as it is in configurations: model=MAC first."""
    rest = {key: value for key, value in net.items() if key not in ("model", "macaddr")}
    return propstring.join(f"{net['model']}={net['macaddr']}", rest)


def random_mac(prefix: str) -> str:
    """Return a MAC address with the datacenter's prefix."""
    octets = prefix.split(":")
    octets += [f"{secrets.randbelow(256):02X}" for _ in range(6 - len(octets))]
    return ":".join(octets)


def with_mac(text: str, prefix: str) -> str:
    """Return a card with a MAC address: its own, or a new one."""
    net = parse_net(text)
    if "macaddr" not in net:
        net["macaddr"] = random_mac(prefix)
    net["macaddr"] = net["macaddr"].upper()
    return print_net(net)
