"""What was done to a server: how it stands first, then each operation as a waterfall."""

from __future__ import annotations

from common.story.summary import summary
from dashboard.answer import Answer
from dashboard.pages.server.frame import framed
from dashboard.story import operations_of
from dashboard.visit import Visit


def show(visit: Visit) -> Answer:
    """Show a server's operations, the newest first."""
    found = framed(visit)
    return found.view(
        "history",
        short=summary(found.explained, {found.server["id"]: found.server}),
        operations=operations_of(found.explained),
    )
