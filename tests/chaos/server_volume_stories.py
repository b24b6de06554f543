"""Stories of servers that have volumes and aren't simply running, or go to another node."""

from __future__ import annotations

import contextlib

from common.errors import MicronovaError
from tests.chaos.actions import LARGER
from tests.chaos.stage import Party
from tests.chaos.volume_stories import Attach, Detach


class AttachShelved(Attach):
    """A server that is shelved gets a volume."""

    writes = True
    before: tuple[str, str] = ("shelve", "shelved_offloaded")

    def prepare(self) -> None:
        """See ``Story``."""
        super().prepare()
        self.bring()

    def bring(self) -> None:
        """Have the server in the state that the story begins in."""
        action, vm_state = self.before
        self.stage.act(self.server().uuid, action)
        self.rest(lambda: self.server().vm_state == vm_state)


class DetachShelved(AttachShelved, Detach):
    """A server that is shelved loses a volume."""

    good = "available"

    def prepare(self) -> None:
        """See ``Story``."""
        Detach.prepare(self)
        self.bring()

    def act(self) -> None:
        """See ``Story``."""
        self.detach()


class AttachPaused(AttachShelved):
    """A server that is paused gets a volume."""

    before = ("pause", "paused")


class DetachPaused(DetachShelved):
    """A server that is paused loses a volume."""

    before = ("pause", "paused")


class Move(Detach):
    """A server moves to another host while it runs, with a volume on shared storage."""

    good = "active"
    parties: tuple[Party, ...] = (Party.SOURCE, Party.TARGET, Party.HOLDER)

    def act(self) -> None:
        """See ``Story``."""
        context, client, uuid = self.stage.context(), self.stage.client, self.server().uuid
        with contextlib.suppress(MicronovaError):
            self.asked(
                "live_migrate_server",
                lambda: client.live_migrate_server(context, uuid, None, None),
            )

    def state(self) -> str:
        """See ``Story``: the server's."""
        row = self.server()
        return "none" if row is None else str(row.vm_state)

    def wrong(self) -> str:
        """See ``Story``: whatever became of the move, the server has its volume."""
        row, volume = self.server(), self.row()
        lost = "" if row is None or volume.status == "in-use" else f"the volume is {volume.status}"
        return "; ".join(filter(None, (super().wrong(), lost)))


class Resize(Move):
    """A server moves to another host and gets another size, with a volume on shared storage."""

    good = "resized"

    def act(self) -> None:
        """See ``Story``: the stage's options say that its own host may not be taken."""
        context, client, uuid = self.stage.context(), self.stage.client, self.server().uuid
        with contextlib.suppress(MicronovaError):
            self.asked("resize_server", lambda: client.resize_server(context, uuid, LARGER))
