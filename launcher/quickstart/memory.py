"""What was made on this machine, with its secrets: so the next run makes the same."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass, field
from typing import Any

from common.errors import ConfigurationError
from launcher.quickstart.machine import ROOT_MODE, Machine

NAME = "quickstart.json"
_BYTES = 24


@dataclass
class Memory:
    """Its content."""

    machine: Machine
    passwords: dict[str, str] = field(default_factory=dict)
    """Of PostgreSQL's roles and RabbitMQ's user, by purpose."""
    made: list[str] = field(default_factory=list)
    """``role NAME``, ``database NAME``, ``bus-user NAME``, ``file NAME``, ``unit NAME``; and what
    others had before: ``bus-others queue NAME``, ``bus-others exchange NAME``."""

    @classmethod
    def read(cls, machine: Machine) -> Memory:
        """Return what is stored; else nothing. Raises ConfigurationError for what isn't ours."""
        path = machine.folder / NAME
        if not path.exists():
            return cls(machine)
        try:
            found: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
            return cls(machine, dict(found["passwords"]), list(found["made"]))
        except (ValueError, KeyError, TypeError):
            raise ConfigurationError(f"{path} isn't what was written there.") from None

    def password(self, purpose: str) -> str:
        """Return the password for a purpose, which is made at the first use, and stored."""
        if purpose not in self.passwords:
            self.passwords[purpose] = secrets.token_urlsafe(_BYTES)
            self.store()
        return self.passwords[purpose]

    def add(self, thing: str) -> None:
        """Store that something is about to be made, so that its removal is never forgotten."""
        if thing not in self.made:
            self.made.append(thing)
            self.store()

    def has(self, thing: str) -> bool:
        """Return whether it was made here, or was about to be."""
        return thing in self.made

    def of(self, kind: str) -> list[str]:
        """Return the names of a kind, in the order of their making."""
        pairs = (one.partition(" ") for one in self.made)
        return [name for found, _, name in pairs if found == kind]

    def remove(self, thing: str) -> None:
        """Store that it is gone."""
        self.made.remove(thing)
        self.store()

    def store(self) -> None:
        """Write it, for root alone."""
        content = {"passwords": self.passwords, "made": self.made}
        self.machine.write(NAME, json.dumps(content, indent=1) + "\n", ROOT_MODE)

    def forget(self) -> None:
        """Remove it, at the end of a removal."""
        (self.machine.folder / NAME).unlink(missing_ok=True)
