"""Consoles of servers: `remote-consoles`, the actions before it, and their tokens."""

from __future__ import annotations

import io
import re
import secrets
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from api.compute.call import Call
from api.compute.operation import operation
from api.compute.resources.found import the_server
from api.compute.schemas import consoles as schemas
from common import clock
from common.errors import Invalid, NotFound, NotSupported
from common.messages.consoles import ConsoleType, token_hash
from db.reads.servers import console_tokens

#: the microversion with which the actions became `remote-consoles`
_ACTIONS_UNTIL = "2.5"
_RULE = "os-remote-consoles"
#: webob's words for a 400 without any
_MALFORMED = (
    "The server could not comply with the request since it is either malformed or otherwise "
    "incorrect."
)
_TOKEN_BYTES = 32
#: Nova leaves tabs and line feeds
_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f]")


class ConsoleActions:
    """The actions that open consoles up to 2.5, and the console's log."""

    @operation(_RULE, until=_ACTIONS_UNTIL, body=schemas.GET_VNC, on=the_server)
    def get_vnc_console(self, call: Call) -> Any:
        """Open a server's screen: answer a URL that works once."""
        return {"console": _console(call, "vnc", call.body["os-getVNCConsole"]["type"])}

    @operation(_RULE, until=_ACTIONS_UNTIL, body=schemas.GET_SPICE, on=the_server)
    def get_spice_console(self, call: Call) -> Any:
        """Refuse: the protocol would lead clients to the nodes."""
        return {"console": _console(call, "spice", call.body["os-getSPICEConsole"]["type"])}

    @operation(_RULE, until=_ACTIONS_UNTIL, body=schemas.GET_SERIAL, on=the_server)
    def get_serial_console(self, call: Call) -> Any:
        """Open a server's serial line: answer the URL of a websocket that works once."""
        return {"console": _console(call, "serial", call.body["os-getSerialConsole"]["type"])}

    @operation(None, until=_ACTIONS_UNTIL)
    def get_rdp_console(self, call: Call, server_id: str) -> None:
        """Refuse: Nova has removed it."""
        raise Invalid(_MALFORMED)

    @operation("os-console-output", body=schemas.GET_OUTPUT, on=the_server)
    def get_console_output(self, call: Call) -> Any:
        """Show the last lines that a server's serial line said; 501 where no log is kept."""
        length = call.body["os-getConsoleOutput"].get("length")
        text = call.conductor.server_console_log(call.ctxt, call.server.uuid)
        return {"output": last_lines(text, None if length is None else int(length))}


class RemoteConsoles:
    """Consoles since 2.6."""

    @operation(_RULE, since="2.6", body=schemas.CREATE, on=the_server)
    def create(self, call: Call) -> Any:
        """Open a console: answer a URL that works once, and for some minutes."""
        asked = call.body["remote_console"]
        protocol = asked["protocol"]
        if protocol == "rdp":
            raise NotSupported(f"Unavailable console type {protocol}.")
        opened = _console(call, protocol, asked["type"])
        return {"remote_console": {"protocol": protocol, **opened}}


class ConsoleTokens:
    """What the tokens in the URLs open."""

    @operation("os-console-auth-tokens", query=schemas.SHOW_TOKEN)
    def show(self, call: Call, token: str) -> Any:
        """Show which server a token opens."""
        if call.version < 31:
            raise Invalid(_MALFORMED)
        found = call.read(console_tokens.find, token_hash(token), clock.utcnow())
        if found is None:
            raise NotFound("Token not found")
        return {
            "console": {
                "instance_uuid": found.server_uuid,
                "host": found.host,
                "port": found.port,
                "internal_access_path": None,
            }
        }


def last_lines(text: str, length: int | None) -> str:
    """Return the last lines without control characters; None or less than 0: all of them."""
    lines = io.StringIO(text).readlines()
    first = 0 if length is None or length < 0 else max(0, len(lines) - length)
    return _CONTROLS.sub("", "".join(lines[first:]))


def _console(call: Call, protocol: str, console_type: str) -> dict[str, str]:
    token = secrets.token_urlsafe(_TOKEN_BYTES)
    call.conductor.authorize_console(
        call.ctxt, call.server.uuid, protocol, console_type, token_hash(token)
    )
    options = call.cloud.conf.console
    if console_type == ConsoleType.NOVNC:
        url = page_url(options.novnc_url, token)
    else:
        url = f"{options.serial_url}?token={token}"
    return {"type": console_type, "url": url}


def page_url(base: str, token: str) -> str:
    """Return the URL of the page that shows a screen; it puts the token into its websocket's.

    >>> page_url("https://cloud.example.org/vnc_auto.html", "T")
    'https://cloud.example.org/vnc_auto.html?path=%3Ftoken%3DT'
    """
    parts = urlsplit(base)
    query = parse_qs(parts.query)
    path = query.get("path", [""])[0]
    query["path"] = [f"{path}?token={token}"]
    return parts._replace(query=urlencode(query, doseq=True)).geturl()
