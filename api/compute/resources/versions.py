"""Version documents, served without a token."""

from __future__ import annotations

from typing import Any

import falcon
from oslo_config import cfg

from api.compute.links import LEGACY_VERSION, VERSION, VERSION_ASKED, Links, links_of
from api.compute.microversions import VERSIONS
from web import wsgi

#: PATH_INFOs of the documents; an empty one is the mount point without its slash
ANONYMOUS = ("", "/", f"/{VERSION}", f"/{VERSION}/")

#: name in the path → entry of Nova's document
DESCRIBED: dict[str, dict[str, str]] = {
    LEGACY_VERSION: {
        "id": "v2.0",
        "status": "DEPRECATED",
        "version": "",
        "min_version": "",
        "updated": "2025-07-04T12:00:00Z",
    },
    VERSION: {
        "id": "v2.1",
        "status": "CURRENT",
        "version": VERSIONS.text(VERSIONS.newest),
        "min_version": VERSIONS.text(VERSIONS.oldest),
        "updated": "2013-07-23T11:33:21Z",
    },
}


class Versions:
    """`/` lists the versions, `/v2.1/` and `/v2/` describe one each."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Falcon's responder."""
        links = links_of(req, self._conf.api.compute_link_prefix)
        if req.path.startswith(f"/{VERSION}"):
            name = req.env.get(VERSION_ASKED, VERSION)
            wsgi.send_json(resp, {"version": _document(name, links)})
        else:
            wsgi.send_json(resp, {"versions": [_entry(name, links) for name in DESCRIBED]})


def _entry(name: str, links: Links) -> dict[str, Any]:
    href = f"{links.versions}/{name}/"
    return {**DESCRIBED[name], "links": [{"rel": "self", "href": href}]}


def _document(name: str, links: Links) -> dict[str, Any]:
    entry = _entry(name, links)
    about = {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}
    kind = f"application/vnd.openstack.compute+json;version={name.removeprefix('v')}"
    return {
        **entry,
        "links": [*entry["links"], about],
        "media-types": [{"base": "application/json", "type": kind}],
    }
