"""The forms of a path that Cinder accepts: with the project's ID, and without."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from web.wsgi import Wsgi, joined

#: key of `environ`: the project in the path
PROJECT = "micronova.volume_project_of_path"
_OF_PROJECT = re.compile(r"/v3/(?P<project>[0-9a-f]{32}|[0-9a-f-]{36})(?P<rest>/.*)")


class Paths:
    """WSGI layer: `/v3/{project_id}/volumes` is `/v3/volumes` of that project."""

    def __init__(self, app: Wsgi) -> None:
        self._app = app

    def __call__(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        """Serve the request."""
        path = joined(environ.get("PATH_INFO", ""))
        found = _OF_PROJECT.fullmatch(path)
        if found:
            environ[PROJECT] = found["project"]
            path = f"/v3{found['rest']}"
        environ["PATH_INFO"] = path
        return self._app(environ, start_response)
