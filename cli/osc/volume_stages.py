"""``--wait`` of python-openstackclient's volume commands, which have none: their steps are shown.

The command itself only asks, as it does without ``--wait``.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cli.command import OneLineErrors
from cli.osc.names import entry_points
from cli.osc.volume_waiting import Awaited, VolumeWaiting


@dataclass(frozen=True)
class Begins:
    """What a command begins."""

    kind: str
    """The resource that is waited for: ``volume``, ``snapshot`` or ``backup``."""
    argument: str | None = None
    """The command's argument that names it; None: the command makes it, and shows its ID."""
    gone: bool = False
    """Whether the resource is deleted at the end."""
    only_with: tuple[str, ...] = ()
    """Options without which the command changes records alone."""
    of_snapshot: bool = False
    """Whether the argument names a snapshot of the volume that is waited for."""


AWAITED_VOLUMES: Mapping[str, Begins] = {
    "volume backup create": Begins("backup"),
    "volume backup delete": Begins("backup", "backups", gone=True),
    "volume backup restore": Begins("backup", "backup"),
    "volume create": Begins("volume"),
    "volume delete": Begins("volume", "volumes", gone=True),
    "volume revert": Begins("volume", "snapshot", of_snapshot=True),
    "volume set": Begins("volume", "volume", only_with=("size", "type")),
    "volume snapshot create": Begins("snapshot"),
    "volume snapshot delete": Begins("snapshot", "snapshots", gone=True),
}


class StagedVolume(OneLineErrors):
    """Shows with ``--wait`` what happens to volumes."""

    begins: ClassVar[Begins]
    asked: ClassVar[Callable[[Any, argparse.Namespace], Any]]
    """The command itself."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with ``--wait``."""
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--wait", action="store_true", help="Wait until it is done, and show the steps"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask; with ``--wait`` see it done.

        :raises CommandFailed: it failed; with the reason.
        """
        begins, given = self.begins, vars(parsed_args)
        some = not begins.only_with or any(given.get(name) for name in begins.only_with)
        if not parsed_args.wait or not some:
            return self.asked(parsed_args)
        known = [] if begins.argument is None else self._named(given[begins.argument])
        waits = [(one, self._waiting(one, new=False)) for one in known]
        answer = self.asked(parsed_args)
        if begins.argument is None:
            shown = dict(zip(*answer, strict=True))
            made = Awaited(begins.kind, str(shown["id"]), str(shown.get("name") or ""))
            waits = [(made, self._waiting(made, new=True))]
        for one, waiting in waits:
            if len(waits) > 1:
                self.app.stderr.write(f"{one.name or one.id}:\n")
            if begins.gone:
                waiting.until_gone()
            else:
                waiting.until_done()
        return self._now(waits[0][0]) if begins.argument is None else answer

    @property
    def _cloud(self) -> Any:
        return self.app.client_manager.micronova  # type: ignore[attr-defined]

    def _waiting(self, awaited: Awaited, *, new: bool) -> VolumeWaiting:
        return VolumeWaiting(self._cloud, self.app.stderr, awaited, new=new)

    def _named(self, given: Any) -> list[Awaited]:
        """Return what an argument names, before anything is done to it."""
        kind = "snapshot" if self.begins.of_snapshot else self.begins.kind
        names = given if isinstance(given, list) else [given]
        found = [self._cloud.find(kind, name) for name in names]
        if self.begins.of_snapshot:
            found = [self._cloud.find("volume", one.volume_id) for one in found]
        return [Awaited(self.begins.kind, str(one.id), str(one.name or "")) for one in found]

    def _now(self, made: Awaited) -> Any:
        """Return what the command shows, as it is after the wait."""
        name = "volume show" if made.kind == "volume" else f"volume {made.kind} show"
        command = entry_points()[name].load()(self.app, None)
        return command.take_action(command.get_parser("").parse_args([made.id]))
