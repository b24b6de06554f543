"""Links in answers, based on the URL under which the client reached the API."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlencode

import falcon

VERSION = "v2.1"
LEGACY_VERSION = "v2"
_MOUNT = "/compute"
#: servers of a list have few images and flavors
_quoted = functools.lru_cache(1024)(functools.partial(quote, safe=""))
#: keys of `environ`: the version in the path where it isn't VERSION, and the project in the path
VERSION_ASKED = "micronova.version_asked"
PROJECT = "micronova.project_of_path"


class Links:
    """Makes the links of one answer; `root` is the public URL of the API, without `/v2.1`.

    As in Nova, a request whose path names a project is answered with links that name it.
    """

    def __init__(self, root: str, version: str = VERSION, project: str | None = None) -> None:
        self.versions = root.rstrip("/")
        self.is_legacy = version == LEGACY_VERSION
        of_project = f"/{project}" if project else ""
        self.root = f"{self.versions}{of_project}"
        self.api = f"{self.versions}/{version}{of_project}"
        self._bookmarks: dict[tuple[str, str], list[dict[str, str]]] = {}

    def item(self, collection: str, identifier: str) -> list[dict[str, str]]:
        """Return the `self` and `bookmark` links of a resource."""
        path = f"{collection}/{_quoted(identifier)}"
        return [
            {"rel": "self", "href": f"{self.api}/{path}"},
            {"rel": "bookmark", "href": f"{self.root}/{path}"},
        ]

    def location(self, *path: str) -> str:
        """Return the versioned URL of a resource."""
        return "/".join([self.api, *(quote(part, safe="") for part in path)])

    def bookmark(self, collection: str, identifier: str) -> list[dict[str, str]]:
        """Return the unversioned link to a related resource; made once for a whole list."""
        key = (collection, identifier)
        if key not in self._bookmarks:
            href = f"{self.root}/{collection}/{_quoted(identifier)}"
            self._bookmarks[key] = [{"rel": "bookmark", "href": href}]
        return self._bookmarks[key]

    def image(self, image_id: str) -> str:
        """Return an image's URL in the image API, which is served next to this API."""
        beside = self.versions.rpartition("/")[0] if self.versions.endswith(_MOUNT) else ""
        return f"{beside or self.versions}/image/images/{image_id}"

    def after(
        self, path: str, query: Mapping[str, list[str]], marker: str
    ) -> list[dict[str, Any]]:
        """Return the `next` link of a list: the same request, after the last item of this page."""
        asked = [
            (name, value)
            for name, values in sorted(query.items())
            if name != "marker"
            for value in values
        ]
        href = f"{self.api}/{path}?{urlencode([*asked, ('marker', marker)])}"
        return [{"rel": "next", "href": href}]


def links_of(req: falcon.Request, prefix: str | None) -> Links:
    """Return the links for a request; `prefix` is `[api] compute_link_prefix`."""
    asked = (req.env.get(VERSION_ASKED, VERSION), req.env.get(PROJECT))
    if prefix:
        return Links(prefix, *asked)
    before = (req.get_header("X-Forwarded-Prefix") or "").rstrip("/")
    mount = req.env.get("SCRIPT_NAME", "")
    return Links(f"{req.forwarded_scheme}://{req.forwarded_host}{before}{mount}", *asked)
