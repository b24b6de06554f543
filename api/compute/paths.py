"""The forms of a path that Nova accepts: doubled slashes, the project's ID, `/v2`."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from api.compute.links import LEGACY_VERSION, PROJECT, VERSION, VERSION_ASKED
from api.compute.microversions import VERSIONS
from web.wsgi import Wsgi, joined

#: what Nova's routes take for a project's ID
_OF_PROJECT = re.compile(rf"/{re.escape(VERSION)}/(?P<project>[0-9a-f-]+)(?P<rest>/.*)")
_HEADERS = frozenset({VERSIONS.header.lower(), str(VERSIONS.legacy_header).lower()})
_ENVIRON = tuple(f"HTTP_{name.upper().replace('-', '_')}" for name in _HEADERS)


class Paths:
    """WSGI layer: normalises paths, and records the original form in `environ`.

    `/v2.1/{project_id}/servers` is `/v2.1/servers` of that project, which the guard compares with
    the token's. `/v2/servers` is the same at the oldest microversion, whatever the headers say.
    """

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve the request."""
        path = joined(environ.get("PATH_INFO", ""))
        if path == f"/{LEGACY_VERSION}" or path.startswith(f"/{LEGACY_VERSION}/"):
            path = f"/{VERSION}{path.removeprefix(f'/{LEGACY_VERSION}')}"
            environ[VERSION_ASKED] = LEGACY_VERSION
            for name in _ENVIRON:
                environ.pop(name, None)
            start_response = _without_microversion(start_response)
        of_project = _OF_PROJECT.fullmatch(path)
        if of_project:
            environ[PROJECT] = of_project["project"]
            path = f"/{VERSION}{of_project['rest']}"
        environ["PATH_INFO"] = path
        return self._app(environ, start_response)


def _without_microversion(start_response: Any) -> Any:
    def start(status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> Any:
        kept = [
            (name, value)
            for name, value in headers
            if name.lower() not in _HEADERS
            and (name.lower() != "vary" or not any(header in value.lower() for header in _HEADERS))
        ]
        return start_response(status, kept, exc_info)

    return start
