"""The content of a firewall file: the cluster's, a node's or a VM's. Plain data.

A file exists for whatever VMID it was written, whether or not there is such a VM.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import orjson

from simulator.errors import PveError

if TYPE_CHECKING:
    from simulator.call import Call

CHANGED = "detected modified configuration - file changed by other user? Try again."
Rule = dict[str, str]


@dataclass
class Named:
    """A security group, an IP set or an alias: its content and a comment."""

    name: str
    comment: str = ""
    cidr: str = ""
    rules: list[Rule] = field(default_factory=list)
    entries: dict[str, dict[str, str]] = field(default_factory=dict)


@dataclass
class Firewall:
    """One file. Only the cluster's has groups."""

    key: str
    options: dict[str, str] = field(default_factory=dict)
    rules: list[Rule] = field(default_factory=list)
    aliases: dict[str, Named] = field(default_factory=dict)
    ipsets: dict[str, Named] = field(default_factory=dict)
    groups: dict[str, Named] = field(default_factory=dict)

    def digest(self) -> str:
        """Return the SHA-1 of the content, or of an empty text."""
        kept = [self.options, self.rules, self.aliases, self.ipsets, self.groups]
        body = orjson.dumps(kept) if any(kept) else b""
        return hashlib.sha1(body, usedforsecurity=False).hexdigest()


def key_of(call: Call) -> str:
    """Return the key of the file that a call is about, by its path."""
    if call.path.startswith("/cluster/"):
        return "cluster"
    return f"vm/{call.vmid}" if "vmid" in call.params else f"node/{call.node}"


def read(call: Call) -> Firewall:
    """Return the file that a call is about; an empty one if there is none."""
    key = key_of(call)
    return call.cluster.firewalls.get(key) or Firewall(key)


def write(call: Call) -> Firewall:
    """Return a call's file for writing: created if missing, saved when the mutex is released.

    Raises 500 if the caller's digest is not the file's.
    """
    found = read(call)
    if call.get("digest", found.digest()) != found.digest():
        raise PveError(CHANGED)
    call.cluster.firewalls[found.key] = found
    call.cluster.save("firewall", found.key, found)
    return found
