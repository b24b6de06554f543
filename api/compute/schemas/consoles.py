"""Bodies of consoles; facts from nova's schemas/remote_consoles.py."""

from __future__ import annotations

from api.compute.schemas.types import Schema, body, query, record


def _words(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


def _action(name: str, *console_types: str) -> Schema:
    return body(name, record({"type": _words(*console_types)}, ["type"]))


def _create(protocols: tuple[str, ...], console_types: tuple[str, ...]) -> Schema:
    return body(
        "remote_console",
        record(
            {"protocol": _words(*protocols), "type": _words(*console_types)},
            ["protocol", "type"],
        ),
    )


GET_VNC = {"2.1": _action("os-getVNCConsole", "novnc", "xvpvnc")}
GET_SPICE = {"2.1": _action("os-getSPICEConsole", "spice-html5")}
GET_SERIAL = {"2.1": _action("os-getSerialConsole", "serial")}

_PROTOCOLS = ("vnc", "spice", "serial", "rdp")
_TYPES = ("novnc", "xvpvnc", "spice-html5", "serial", "rdp-html5")
CREATE = {
    "2.6": _create(_PROTOCOLS, _TYPES),
    "2.8": _create((*_PROTOCOLS, "mks"), (*_TYPES, "webmks")),
    "2.99": _create((*_PROTOCOLS, "mks"), (*_TYPES, "webmks", "spice-direct")),
}

SHOW_TOKEN = {"2.1": query({}, more=True), "2.99": query({}, more=False)}

GET_OUTPUT = {
    "2.1": body(
        "os-getConsoleOutput",
        record(
            {
                "length": {
                    "type": ["integer", "string", "null"],
                    "pattern": "^-?[0-9]+$",
                    "minimum": -1,
                }
            }
        ),
    )
}
