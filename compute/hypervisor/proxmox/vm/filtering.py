"""Makes a VM's firewall what its ports' security groups say: looks, and writes what differs.

Nothing is opened in between: the policy drops before an interface is filtered, an IP set is there
before a rule names it, and an interface is filtered last. Where somebody writes at the same time
(the digest is another one), it looks again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from urllib.parse import quote

from common.messages.filters import Filter, FilterCheck, Filtered
from compute.hypervisor.proxmox.api.client import Client
from compute.hypervisor.proxmox.api.errors import ApiError
from compute.hypervisor.proxmox.vmconfig import filters

Config = Mapping[str, Any]

TRIES = 5
_NIC = re.compile(r"net[0-9]+")
_MAC = re.compile(r"=([0-9a-f]{2}(?::[0-9a-f]{2}){5})(?:,|$)", re.IGNORECASE)


def converge(client: Client, path: str, proven: Callable[[], Config], wanted: Filter) -> Filtered:
    """Make the firewall of the VM at ``path`` what is wanted.

    ``proven`` returns its configuration, or raises unless it is ours. Raises HypervisorError.
    """
    problem: ApiError | None = None
    for _ in range(TRIES):
        try:
            return _Filtering(client, path, proven, wanted).run()
        except ApiError as error:
            # Somebody wrote between our look and our write, or the answer got lost.
            if not error.may_look_different:
                raise
            problem = error
    assert problem is not None
    raise problem


def check(client: Client, path: str, config: Config, wanted: Filter) -> FilterCheck:
    """Return what ``converge`` would change; changes nothing. Raises HypervisorError."""
    slots = _slots(config)
    want = filters.wanted(wanted, slots)
    differs = list(_flags_off(config, slots, wanted))
    if wanted.any_on:
        changes = filters.options(client.get(f"{path}/firewall/options"), wanted)
        differs += [f"option {name} is not {text}" for name, text in sorted(changes.items())]
    listed = client.get(f"{path}/firewall/rules")
    surplus = filters.surplus(listed, want.rules)
    differs += [f"rule {_words(listed[pos])} is too much" for pos in sorted(surplus)]
    differs += [f"rule {_words(one)} is missing" for one in filters.missing(listed, want.rules)]
    sets = {str(one["name"]): one for one in client.get(f"{path}/firewall/ipset")}
    mine = {name for name, one in sets.items() if filters.is_ours(one)}
    differs += [f"IP set {name} is too much" for name in sorted(mine - (want.sets or {}).keys())]
    for name, addresses in sorted((want.sets or {}).items()):
        entries = client.get(f"{path}/firewall/ipset/{name}") if name in mine else ()
        if name not in sets or (
            name in mine and {str(one["cidr"]) for one in entries} != addresses
        ):
            differs.append(f"IP set {name} is not as it should be")
    foreign = [f"IP set {name}" for name in sorted(sets.keys() - mine)]
    foreign += [f"rule {_words(one)}" for one in listed if not filters.is_ours(one)]
    return FilterCheck(tuple(differs), tuple(foreign))


def _flags_off(config: Config, slots: Mapping[str, str], wanted: Filter) -> Iterator[str]:
    """Yield the interfaces that are filtered and should not be, and the other way round."""
    for port in wanted.ports:
        slot = slots.get(port.mac)
        if slot is None or port.on is None:
            continue
        if filters.has_flag(str(config[slot])) is not port.on:
            yield f"{slot} is {'not filtered' if port.on else 'filtered'}"
        if port.up is not None and filters.has_link(str(config[slot])) is not port.up:
            yield f"{slot} has {'no' if port.up else 'a'} link"


def _words(rule: Mapping[str, Any]) -> str:
    names = ("type", "action", "iface", "proto", "dport", "source", "dest")
    return " ".join(str(rule[name]) for name in names if rule.get(name))


class _Filtering:
    """One try."""

    def __init__(
        self, client: Client, path: str, proven: Callable[[], Config], wanted: Filter
    ) -> None:
        self._client, self._path, self._proven, self._wanted = client, path, proven, wanted
        self._writes = 0
        self._foreign: list[str] = []

    def run(self) -> Filtered:
        slots = _slots(self._proven())
        want = filters.wanted(self._wanted, slots)
        self._links()
        self._flags(on=False)
        if self._wanted.any_on:
            self._options()
        sets = want.sets or {}
        mine = self._fill_sets(sets)
        self._rules(want)
        for name in sorted(mine - sets.keys()):
            self._drop_set(name)
        self._flags(on=True)
        return Filtered(self._writes, want.unsaid, tuple(self._foreign))

    def _links(self) -> None:
        """Have the interfaces that are switched off, or on again, say so."""
        config = self._proven()
        slots = _slots(config)
        changes = {
            slots[port.mac]: filters.with_link(str(config[slots[port.mac]]), port.up)
            for port in self._wanted.ports
            if port.mac in slots
            and port.up is not None
            and filters.has_link(str(config[slots[port.mac]])) is not port.up
        }
        if changes:
            self._written()
            self._client.put(f"{self._path}/config", digest=config["digest"], **changes)

    def _options(self) -> None:
        present = self._client.get(f"{self._path}/firewall/options")
        changes = filters.options(present, self._wanted)
        if changes:
            self._written()
            self._client.put(f"{self._path}/firewall/options", digest=present["digest"], **changes)

    def _fill_sets(self, sets: Mapping[str, frozenset[str]]) -> set[str]:
        """Make the sets what they are to be; return all that are ours."""
        base = f"{self._path}/firewall/ipset"
        present = {str(one["name"]): one for one in self._client.get(base)}
        mine = {name for name, one in present.items() if filters.is_ours(one)}
        self._foreign += [f"IP set {name}" for name in sorted(present.keys() - mine)]
        for name, addresses in sorted(sets.items()):
            if name not in present:
                self._written()
                self._client.post(base, name=name, comment=filters.MARK)
                there: set[str] = set()
            elif name in mine:
                there = {str(one["cidr"]) for one in self._client.get(f"{base}/{name}")}
            else:
                # An IP set made by a person is left alone, and restricts what passes.
                continue
            for gone in sorted(there - addresses):
                self._delete_entry(name, gone)
            for new in sorted(addresses - there):
                self._written()
                self._client.post(f"{base}/{name}", cidr=new)
        return mine | sets.keys() - (present.keys() - mine)

    def _drop_set(self, name: str) -> None:
        base = f"{self._path}/firewall/ipset/{name}"
        for one in self._client.get(base):
            self._delete_entry(name, str(one["cidr"]))
        self._written()
        self._client.delete(base)

    def _delete_entry(self, name: str, cidr: str) -> None:
        self._written()
        self._client.delete(f"{self._path}/firewall/ipset/{name}/{quote(cidr, safe='')}")

    def _rules(self, want: filters.Wanted) -> None:
        base = f"{self._path}/firewall/rules"
        present = self._client.get(base)
        self._foreign += [
            f"rule {one['pos']}: {one['type']} {one['action']}"
            for one in present
            if not filters.is_ours(one)
        ]
        while going := filters.surplus(present, want.rules):
            self._written()
            self._client.delete(f"{base}/{going[0]}", digest=present[going[0]]["digest"])
            present = self._client.get(base)
        for rule in filters.missing(present, want.rules):
            # On top, wherever others' rules are by then: without the digest, which each changes.
            self._written()
            self._client.post(base, enable=1, **rule)

    def _flags(self, *, on: bool) -> None:
        """Have the interfaces that are to be filtered, or not, say so."""
        wanted = {port.mac for port in self._wanted.ports if port.on is on}
        config = self._proven()
        slots = _slots(config)
        changes = {
            slots[mac]: filters.with_flag(str(config[slots[mac]]), on)
            for mac in wanted & slots.keys()
            if filters.has_flag(str(config[slots[mac]])) is not on
        }
        if changes:
            self._written()
            self._client.put(f"{self._path}/config", digest=config["digest"], **changes)

    def _written(self) -> None:
        self._writes += 1


def _slots(config: Config) -> dict[str, str]:
    """Return MAC address → ``netK``."""
    found = {}
    for name, text in config.items():
        mac = _MAC.search(str(text)) if _NIC.fullmatch(name) else None
        if mac is not None:
            found[mac[1].lower()] = name
    return found
