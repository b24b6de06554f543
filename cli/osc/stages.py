"""``--wait`` of python-openstackclient's server commands: the stages instead of a silent poll.

The command itself only sends the request, as without ``--wait``. Then the stages are shown on
standard error, so that standard output has only data; a failure ends the wait with its reason.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

from cli.command import OneLineErrors
from cli.osc.names import entry_points
from cli.osc.volume_stages import AWAITED_VOLUMES, StagedVolume
from cli.osc.volume_versions import VOLUME_MICROVERSIONS, VersionedVolume
from cli.server.operation import Operation
from cli.server.show import show
from cli.server.waiting import Waiting


@dataclass(frozen=True)
class Awaited:
    """What a command begins."""

    action: str
    """As ``os-instance-actions`` calls it."""
    own_option: bool = False
    """Whether the command has ``--wait`` already; the others get it."""
    shown: str | None = None
    """What its output shows, which is read again after the wait: ``server``, ``image``."""


AWAITED: Mapping[str, Awaited] = {
    "server backup create": Awaited("createBackup", own_option=True, shown="image"),
    "server evacuate": Awaited("evacuate", own_option=True, shown="server"),
    "server image create": Awaited("createImage", own_option=True, shown="image"),
    "server migrate": Awaited("migrate", own_option=True),
    "server migrate confirm": Awaited("confirmResize"),
    "server migrate revert": Awaited("revertResize"),
    "server migration confirm": Awaited("confirmResize"),
    "server migration revert": Awaited("revertResize"),
    "server pause": Awaited("pause"),
    "server rebuild": Awaited("rebuild", own_option=True),
    "server rescue": Awaited("rescue"),
    "server resize": Awaited("resize", own_option=True),
    "server resize confirm": Awaited("confirmResize"),
    "server resize revert": Awaited("revertResize"),
    "server restore": Awaited("restore"),
    "server resume": Awaited("resume"),
    "server shelve": Awaited("shelve", own_option=True),
    "server suspend": Awaited("suspend"),
    "server unpause": Awaited("unpause"),
    "server unrescue": Awaited("unrescue"),
    "server unshelve": Awaited("unshelve", own_option=True),
}

#: options that make another action of a command
_OTHER_ACTIONS = {
    "live_migration": "live-migration",
    "confirm": "confirmResize",
    "revert": "revertResize",
}


def with_stages(name: str, command: type[Any]) -> type[Any]:
    """Return a command of python-openstackclient, with stages if it begins an action.

    If the command's own microversion is too old for its output, a newer one is requested.
    """
    if name in AWAITED:
        return _mixed(Staged, command, awaited=AWAITED[name])
    if name in AWAITED_VOLUMES:
        return _mixed(StagedVolume, command, begins=AWAITED_VOLUMES[name])
    if name in VOLUME_MICROVERSIONS:
        return _mixed(VersionedVolume, command, microversion=VOLUME_MICROVERSIONS[name])
    return command


def _mixed(mixin: type[Any], command: type[Any], **more: Any) -> type[Any]:
    metaclass: Any = type(command)
    namespace = {
        "__module__": command.__module__,
        "__doc__": command.__doc__,
        "asked": command.take_action,
        **more,
    }
    mixed: type[Any] = metaclass(command.__name__, (mixin, command), namespace)
    return mixed


class Staged(OneLineErrors):
    """Shows with ``--wait`` what happens to the servers."""

    awaited: ClassVar[Awaited]
    asked: ClassVar[Callable[[Any, argparse.Namespace], Any]]
    """The command itself."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        """Return the parser, with ``--wait``."""
        parser = super().get_parser(prog_name)
        if not self.awaited.own_option:
            parser.add_argument(
                "--wait", action="store_true", help="Wait until it is done, and show the stages"
            )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Ask; with ``--wait`` see it done.

        :raises CommandFailed: it failed; with the fault's sentence.
        """
        if not parsed_args.wait:
            return self.asked(parsed_args)
        servers = self._servers(parsed_args)
        action = self._action(parsed_args)
        before = {one.id: self._newest(one.id, action) for one in servers}
        parsed_args.wait = False
        answer = self.asked(parsed_args)
        for server in servers:
            # Some commands pass over servers that are as they should be.
            if self._newest(server.id, action) == before[server.id]:
                continue
            if len(servers) > 1:
                self.app.stderr.write(f"{server.name}:\n")
            Waiting(self._cloud, self.app.stderr).until_idle(server.id, server.name, action)
        return self._now(answer, servers)

    @property
    def _cloud(self) -> Any:
        return self.app.client_manager.micronova  # type: ignore[attr-defined]

    def _servers(self, parsed_args: argparse.Namespace) -> list[Any]:
        given = vars(parsed_args)
        names = given.get("servers") or given["server"]
        names = names if isinstance(names, list) else [names]
        return [self._cloud.find("server", name, details=False) for name in names]

    def _action(self, parsed_args: argparse.Namespace) -> str:
        given = vars(parsed_args)
        others = (action for option, action in _OTHER_ACTIONS.items() if given.get(option))
        return next(others, self.awaited.action)

    def _newest(self, server_id: str, action: str) -> str | None:
        """Return the request that began the newest action of this kind."""
        operation = Operation(self._cloud.compute, server_id, action)
        operation.look()
        return operation.request_id

    def _now(self, answer: Any, servers: list[Any]) -> Any:
        """Return what the command shows, as it is after the wait."""
        if self.awaited.shown == "server":
            return show(self._cloud, self._cloud.compute.get_server(servers[0].id))
        if self.awaited.shown == "image":
            image = entry_points()["image show"].load()(self.app, None)
            asked = image.get_parser("").parse_args([dict(zip(*answer, strict=True))["id"]])
            return image.take_action(asked)
        return answer
