"""``micronova explain``: the story of a request, step by step, across the services."""

from __future__ import annotations

import argparse
import re
from pathlib import Path
from typing import Any

from cli.command import Command, argument
from cli.errors import CommandFailed
from cli.finding import NotFound
from cli.render.page import page
from cli.server.events import is_uuid
from cli.terminal import write
from common.story.explanation import explanation_lines

_BLOCK_STORAGE = ("volume", "snapshot", "transfer")
_REQUEST = re.compile(r"req-[0-9a-f-]{36}", re.IGNORECASE)


class Explain(Command):
    """Show what happened to a request, a server, a volume or another resource, and why.

    For each operation: how the states changed, which steps ran where and how long, how the
    scheduler decided and why it refused hosts, and for each fault the Proxmox task, its log,
    what was cleaned up and what to do.
    """

    in_all_regions = True

    arguments = (
        argument(
            "what",
            metavar="<request id|server|volume|…>",
            help="Request ID; server, or volume, snapshot or transfer of a volume (name or ID); "
            "or the ID of a port or an image",
        ),
        argument(
            "-f",
            "--format",
            metavar="<format>",
            choices=("text", "json", "yaml"),
            default="text",
            help="text (default), json or yaml",
        ),
        argument(
            "--html",
            metavar="<file>",
            help="Write a page to this file, to be opened from disk, instead of text",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        """Print the explanation."""
        explanation = self._explanation(parsed_args.what)
        out = self.app.stdout
        if parsed_args.html:
            self._write_page(explanation, Path(parsed_args.html).expanduser())
        elif parsed_args.format == "json":
            import json

            json.dump(explanation, out, indent=2)
            out.write("\n")
        elif parsed_args.format == "yaml":
            import yaml

            yaml.safe_dump(explanation, out, sort_keys=False, allow_unicode=True)
        else:
            write(out, explanation_lines(explanation, self._servers(explanation)))

    def _write_page(self, explanation: Any, path: Path) -> None:
        try:
            path.write_text(page(explanation, self._servers(explanation)), encoding="utf-8")
        except OSError as error:
            raise CommandFailed(f"Can't write {path}: {error.strerror}") from error
        self.say(f"Written: {path}")

    def _servers(self, explanation: Any) -> dict[str, dict[str, Any]]:
        """Return what the servers of the story are now; those that are gone are left out."""
        from openstack import exceptions

        known = {}
        for uuid in {str(o["server"]) for o in explanation["operations"] if o.get("server")}:
            try:
                server = self.cloud.compute.get_server(uuid)
            except exceptions.HttpException:
                continue  # the explanation itself shows how it ended
            host = server.hypervisor_hostname
            known[uuid] = {"name": server.name, "status": server.status, "host": host}
        return known

    def _id(self, name_or_id: str) -> str:
        """Return the ID of a server, or else of a block storage resource, with this name.

        :raises CommandFailed: no resource has the name, or several have.
        """
        if is_uuid(name_or_id):
            return name_or_id
        try:
            return str(self.cloud.find("server", name_or_id).id)
        except NotFound as error:
            for kind in _BLOCK_STORAGE:
                found = self._found(kind, name_or_id)
                if found is not None:
                    return found
            raise CommandFailed(
                f"No server, volume, snapshot or transfer named '{name_or_id}'. (What is deleted "
                "is asked for by ID.)"
            ) from error

    def _found(self, kind: str, name: str) -> str | None:
        """Return the ID of the resource with this name; None: not found, or no block storage."""
        from openstack import exceptions

        try:
            return str(self.cloud.find(kind, name).id)
        except (NotFound, exceptions.EndpointNotFound):
            return None

    def _explanation(self, what: str) -> Any:
        from openstack.exceptions import raise_from_response

        if not _REQUEST.fullmatch(what):
            what = self._id(what)
        response = self.cloud.compute.get(f"/explanations/{what}")
        raise_from_response(response)
        return response.json()["explanation"]
