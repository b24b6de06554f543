"""Import methods: which there are, and which one a request asks for."""

from __future__ import annotations

from typing import Any

from api.image.data.downloads import Downloads
from api.image.data.uploads import Uploads
from common.errors import Invalid
from conductor.rpc.images import DIRECT, DOWNLOAD


class Methods:
    """How data can be imported here."""

    def __init__(self, uploads: Uploads, downloads: Downloads) -> None:
        self.names: tuple[str, ...] = ()
        if uploads.fetch_url:
            self.names = (DIRECT, DOWNLOAD) if downloads.allowed else (DIRECT,)

    def named(self, body: Any) -> tuple[str, str]:
        """Return the method that is asked for, and the URI. Raises Invalid."""
        method = body.get("method") if isinstance(body, dict) else None
        if not isinstance(method, dict):
            raise Invalid("Import request requires a 'method' field.")
        if "name" not in method:
            raise Invalid("Import request requires a 'name' field.")
        if method["name"] not in self.names:
            why = f"Unknown import method name '{method['name']}'."
            if method["name"] == DOWNLOAD:
                why += " The operator allows it with [images] download_from."
            raise Invalid(why)
        for name in ("all_stores", "all_stores_must_succeed"):
            if not isinstance(body.get(name, False), bool):
                raise Invalid(f"'{name}' must be boolean value only")
        if body.get("stores"):
            raise Invalid("There are no stores to choose from.")
        return method["name"], str(method.get("uri"))
