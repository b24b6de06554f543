"""Who sees what: a hint for people; the APIs decide."""

from __future__ import annotations

import enum
from collections.abc import Collection


class May(enum.Enum):
    """Who sees a page or a button: a hint for people; the API decides."""

    READ = frozenset({"reader", "member", "manager", "admin"})
    CHANGE = frozenset({"member", "manager", "admin"})
    MANAGE = frozenset({"manager", "admin"})
    OPERATE = frozenset({"admin"})

    def allows(self, roles: Collection[str]) -> bool:
        """Return whether one of the roles does."""
        # Some clouds have other role names: any role may read.
        return bool(self.value & set(roles)) or (self is May.READ and bool(roles))
