"""Operations of the ledger as rows: who did what to what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from dashboard.cloud import rows, segment

#: the page of all operations
ACTIVITY = "/activity"
#: what asks for those that wait, the longest first
OLDEST_OPEN: Mapping[str, str] = {"state": "open", "order": "oldest"}
#: resource type → where its page is
_PAGES: Mapping[str, str] = {
    "server": "/servers/{}",
    "volume": "/volumes/{}",
    "image": "/images/{}",
    "network": "/networks/{}",
    "host": "/nodes/{}",
    "group": "/groups/{}",
}


@dataclass(frozen=True)
class Entry:
    """One operation."""

    facts: Mapping[str, Any]
    """As the API shows it."""

    @property
    def subject(self) -> str:
        """What it is done to: a name where there is one."""
        return str(self.facts["resource_name"] or self.facts["resource_id"])

    @property
    def page(self) -> str:
        """The page of what it is done to; empty: there is none."""
        found = _PAGES.get(self.facts["resource_type"], "")
        return found.format(segment(self.facts["resource_id"])) if found else ""

    @property
    def user(self) -> str:
        """Who asked for it; the cloud itself is nobody."""
        return str(self.facts["user_name"] or self.facts["user_id"] or "the cloud itself")

    @property
    def project(self) -> str:
        """The project, by its name where it is known."""
        return str(self.facts["project_name"] or self.facts["project_id"])


def entries(answer: Any) -> Sequence[Entry]:
    """Return the operations of an answer; none where it is `Missing`."""
    return [Entry(one) for one in rows(answer, "operations")]
