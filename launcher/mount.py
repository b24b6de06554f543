"""Several WSGI applications on one port, each below a path of its own."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment


class Mount:
    """Hands a request to the application that its first path segment names."""

    def __init__(self, apps: Mapping[str, WSGIApplication]) -> None:
        self._apps = dict(apps)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """Serve the request, or say which applications there are."""
        name, slash, path = environ.get("PATH_INFO", "").lstrip("/").partition("/")
        app = self._apps.get(name)
        if app is None:
            return self._directory(bool(name), environ, start_response)
        environ["SCRIPT_NAME"] = f"{environ.get('SCRIPT_NAME', '')}/{name}"
        environ["PATH_INFO"] = slash + path
        return app(environ, start_response)

    def _directory(
        self, missing: bool, environ: WSGIEnvironment, start_response: StartResponse
    ) -> list[bytes]:
        base = f"{environ['wsgi.url_scheme']}://{environ.get('HTTP_HOST', '')}"
        links = {name: f"{base}/{name}/" for name in self._apps}
        body = json.dumps({"error": "Not Found"} if missing else {"apis": links}).encode()
        headers = [("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
        start_response("404 Not Found" if missing else "200 OK", headers)
        return [body]
