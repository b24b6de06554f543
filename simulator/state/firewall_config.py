"""The content of a firewall file: the cluster's, a node's or a VM's. Plain data.

A file exists for whatever VMID it was written, whether or not there is such a VM.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field

import orjson

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
