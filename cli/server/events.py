"""``micronova server event …``."""

from __future__ import annotations

import argparse
import re
from typing import Any

from cli import columns
from cli.cloud import Cloud
from cli.columns import Column, shown, table
from cli.command import PAGING, Lister, ShowOne, argument, flag, given, paging
from cli.errors import CommandFailed
from cli.finding import NotFound

_COLUMNS = (
    Column("Request ID", "request_id"),
    Column("Server ID", "server_id"),
    Column("Action", "action"),
    Column("Start Time", "start_time"),
)
_LONG = (
    Column("Message", "message"),
    Column("Project ID", "project_id"),
    Column("User ID", "user_id"),
)
_SERVER = argument("server", metavar="<server>", help="Server (name, or ID of a deleted one)")
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.IGNORECASE)


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID with hyphens."""
    return _UUID.fullmatch(text) is not None


def server_id(cloud: Cloud, name_or_id: str) -> str:
    """Return a server's id. A UUID that isn't found is taken as a deleted server's.

    :raises CommandFailed: no server has this name, or several have.
    """
    try:
        return str(cloud.find("server", name_or_id).id)
    except NotFound as error:
        if is_uuid(name_or_id):
            return name_or_id
        raise CommandFailed(f"{error} (A deleted server is asked for by ID.)") from error


class ListServerEvents(Lister):
    """List the actions on a server."""

    in_all_regions = True

    arguments = (
        _SERVER,
        flag("--long", help="List additional fields"),
        argument("--changes-since", metavar="<time>", help="Only changed since (ISO 8601)"),
        argument("--changes-before", metavar="<time>", help="Only changed before (ISO 8601)"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each request."""
        query = given(parsed_args, "changes_since", "changes_before") | paging(parsed_args)
        found = server_id(self.cloud, parsed_args.server)
        actions = self.cloud.compute.server_actions(found, **query)
        return table(_COLUMNS + (_LONG if parsed_args.long else ()), actions)


class ShowServerEvent(ShowOne):
    """Show an action on a server, with its steps."""

    in_all_regions = True

    arguments = (
        _SERVER,
        argument("request_id", metavar="<request-id>", help="ID of the request"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the request with its events."""
        found = server_id(self.cloud, parsed_args.server)
        action = self.cloud.compute.get_server_action(parsed_args.request_id, found)
        values = action.to_dict()
        unseen = ("id", "name", "location")
        values["events"] = [
            {key: value for key, value in event.items() if key not in unseen}
            for event in values.get("events") or ()
        ]
        hidden = ("name", "server_id", "links")
        return shown(values, {}, hidden, {"events": columns.PairsList})
