"""``micronova server adopt``, ``release``, ``mark``, ``hold``, ``retry`` and their like."""

from __future__ import annotations

import argparse
from typing import Any

from cli.cloud import Cloud
from cli.command import Command, ShowOne, argument, flag
from cli.errors import CommandFailed
from cli.server.show import show
from cli.server.waiting import Waiting

_LOOKS, _LOOK_SECONDS = 240, 0.5
_SERVER = argument("server", metavar="<server>", help="Server (name or ID)")
_SERVERS = argument("server", metavar="<server>", nargs="+", help="Server(s) (name or ID)")
_ALL = flag("--all-projects", help="Look in all projects (admin only)")


def _post(compute: Any, path: str, body: dict[str, Any]) -> Any:
    """Send a request that only micronova's API has; return the answer."""
    from openstack.exceptions import raise_from_response

    response = compute.post(path, json=body)
    raise_from_response(response)
    return response


def _find(cloud: Cloud, name: str, *, everywhere: bool) -> Any:
    return cloud.find("server", name, details=False, all_projects=everywhere)


class AdoptServer(ShowOne):
    """Take an existing VM under management (admin only). Nothing of it is restarted.

    Only its owner mark is set, in its description. From then on it is a server like any other:
    deleting it destroys the VM, with its disks.
    """

    arguments = (
        argument("--cluster", metavar="<cluster>", required=True, help="Its cluster"),
        argument("--vmid", metavar="<vmid>", type=int, required=True, help="Its VMID"),
        argument("--project", metavar="<project>", required=True, help="Whose it is (name or ID)"),
        argument("--project-domain", metavar="<domain>", help="Domain of the project"),
        argument("--user", metavar="<user>", help="Its user (name or ID; default: you)"),
        argument("--user-domain", metavar="<domain>", help="Domain of the user"),
        argument("--name", metavar="<name>", help="Its name (default: as the VM is called)"),
        argument(
            "--flavor",
            metavar="<flavor>",
            help="A flavor that is no smaller than the VM (default: one of its own)",
        ),
        flag("--wait", help="Wait until it is adopted, and show the steps"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the server as it is now."""
        compute = self.cloud.compute
        asked: dict[str, Any] = {
            "cluster": parsed_args.cluster,
            "vmid": parsed_args.vmid,
            "project_id": self.cloud.project_id(parsed_args.project, parsed_args.project_domain),
        }
        if parsed_args.user:
            asked["user_id"] = self.cloud.user_id(parsed_args.user, parsed_args.user_domain)
        if parsed_args.name:
            asked["name"] = parsed_args.name
        if parsed_args.flavor:
            asked["flavor"] = self.cloud.find("flavor", parsed_args.flavor).id
        answer = _post(compute, "/adoptions", {"adoption": asked}).json()["adoption"]
        if parsed_args.wait:
            self._wait(answer["server_id"], parsed_args.name or f"VM {parsed_args.vmid}")
        return show(self.cloud, compute.get_server(answer["server_id"]))

    def _wait(self, server_id: str, name: str) -> None:
        from openstack import exceptions

        Waiting(self.cloud, self.app.stderr).until_still(server_id)
        try:
            self.cloud.compute.get_server(server_id)
        except exceptions.NotFoundException as error:
            raise CommandFailed(
                f"{name} was not adopted, and is as it was: {self._why(server_id)}"
            ) from error

    def _why(self, server_id: str) -> str:
        response = self.cloud.compute.get(f"/explanations/{server_id}")
        if response.status_code != 200:
            return f"micronova explain {server_id}"
        found = response.json()["explanation"]["operations"][-1]
        return str(found.get("message") or f"micronova explain {server_id}")


class ReleaseServer(Command):
    """Stop managing a server (admin only): remove its record, leave its VM unchanged.

    Only the owner mark is removed from the VM. The reverse of adopt.
    """

    arguments = (_SERVER, _ALL, flag("--wait", help="Wait until it is released"))

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Request it; wait until the record is gone."""
        compute = self.cloud.compute
        found = _find(self.cloud, parsed_args.server, everywhere=parsed_args.all_projects)
        _post(compute, f"/servers/{found.id}/action", {"release": None})
        if parsed_args.wait:
            Waiting(self.cloud, self.app.stderr).until_gone(found.id, found.name, "release")


class MarkServer(Command):
    """Restore the owner mark of a server's VM that somebody edited (admin only).

    Only if the VM's SMBIOS UUID is the server's, the journal gave the server this VMID, and no
    recorded task shows that others made the VM. Other lines of its description are not changed.
    Operations that waited for the mark, such as a delete, continue at once.
    """

    arguments = (_SERVER, _ALL)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Request it; wait until it is written, or raise the reason."""
        compute = self.cloud.compute
        found = _find(self.cloud, parsed_args.server, everywhere=parsed_args.all_projects)
        asked = _post(compute, f"/servers/{found.id}/action", {"mark": None})
        request_id = asked.headers["x-openstack-request-id"]
        for _ in range(_LOOKS):
            answer = compute.get(f"/explanations/{request_id}")
            operations = answer.json()["explanation"]["operations"] if answer.ok else []
            ended = [one for one in operations if one["state"] in ("done", "failed")]
            if ended:
                if ended[-1]["state"] == "failed":
                    raise CommandFailed(f"The mark was not written: {ended[-1]['message']}")
                self.say(f"The VM of {found.name} carries its mark.")
                return
            self.cloud.pause(_LOOK_SECONDS)
        raise CommandFailed(f"It is not done yet: micronova explain {request_id}")


class HoldServers(Command):
    """Stop automatic retries for servers. New requests still run."""

    arguments = (_SERVERS, _ALL)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Hold each server."""
        self._each(parsed_args, "hold")

    def _each(self, parsed_args: argparse.Namespace, action: str) -> None:
        compute = self.cloud.compute

        def act(name: str) -> None:
            found = _find(self.cloud, name, everywhere=parsed_args.all_projects)
            _post(compute, f"/servers/{found.id}/action", {action: None})

        self.each(parsed_args.server, f"{action} server", act)


class ReleaseHold(HoldServers):
    """Allow automatic retries again, and retry at once."""

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Release each server's hold."""
        self._each(parsed_args, "release-hold")


class RetryServers(HoldServers):
    """Retry a waiting operation now, or check a server in ERROR (admin only).

    For use after the cause was removed: a lock, a missing privilege, a silent node. The end of
    the cause is usually detected within seconds without it. A held server remains held.
    """

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Retry each server."""
        self._each(parsed_args, "retry")


class ForgetServer(Command):
    """Remove the record of a server whose VM isn't ours (admin only). The VM is not touched.

    For a delete that never ends because somebody else's VM has the VMID. What was known is
    recorded in the history; the VMID is quarantined for some time.
    """

    arguments = (
        _SERVER,
        _ALL,
        argument("--reason", metavar="<text>", help="Reason; recorded in the history"),
        flag("--force", help="The cluster is gone for good: its VMs can't be looked at"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Request it."""
        if parsed_args.force and not parsed_args.reason:
            raise CommandFailed("--force needs a --reason: it is recorded in the history")
        compute = self.cloud.compute
        found = _find(self.cloud, parsed_args.server, everywhere=parsed_args.all_projects)
        asked = {"force": parsed_args.force}
        if parsed_args.reason:
            asked["reason"] = parsed_args.reason
        _post(compute, f"/servers/{found.id}/action", {"forget": asked})
