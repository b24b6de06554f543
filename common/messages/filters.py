"""What is to pass a server's interfaces, as agents get it: complete, for they keep nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from common.resources.security_rules import Rule


@dataclass(frozen=True)
class FilterRule:
    """A rule of a security group that a port is in."""

    id: str
    rule: Rule


@dataclass(frozen=True)
class PortFilter:
    """What is to pass one interface."""

    mac: str
    on: bool | None
    """Whether it is filtered; None: not specified, so its setting is not changed."""
    addresses: tuple[str, ...] | None = ()
    """Addresses, and ranges of them, that it may use; None: any, as others assign them."""
    rules: tuple[FilterRule, ...] = ()
    up: bool | None = None
    """Whether it has a link; None: not specified, so its setting is not changed."""
    any_mac: bool = False
    """Whether it may use other MAC addresses than its own."""


@dataclass(frozen=True)
class Filter:
    """What is to pass the interfaces of one server."""

    ports: tuple[PortFilter, ...] = ()
    groups: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Remote group → the addresses of its members."""

    @property
    def any_on(self) -> bool:
        """Whether an interface is filtered."""
        return any(port.on for port in self.ports)


@dataclass(frozen=True)
class Filtered:
    """What an agent found and did."""

    writes: int = 0
    """Requests that changed something."""
    unsaid: tuple[str, ...] = ()
    """Rules that the hypervisor can't express: they let nothing through."""
    foreign: tuple[str, ...] = ()
    """Others' rules and sets, which are not changed, a sentence each."""


@dataclass(frozen=True)
class FilterCheck:
    """What an agent found that is not as wanted; nothing was changed."""

    differs: tuple[str, ...] = ()
    """A few words each."""
    foreign: tuple[str, ...] = ()
    """Others' rules and sets."""
