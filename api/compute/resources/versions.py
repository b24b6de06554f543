"""Version documents: what a client reads first, without a token."""

from __future__ import annotations

from typing import Any

import falcon
from oslo_config import cfg

from api.compute import microversions
from api.compute.links import links_of
from common import web

#: PATH_INFOs of the documents; an empty one is the mount point without its slash
ANONYMOUS = ("", "/", "/v2.1", "/v2.1/")

UPDATED = "2013-07-23T11:33:21Z"
"""As Nova's document says of v2.1; clients compare nothing with it."""


class Versions:
    """`/` lists the versions, `/v2.1/` describes the one there is."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Falcon's responder."""
        links = links_of(req, self._conf.api.compute_link_prefix)
        version: dict[str, Any] = {
            "id": "v2.1",
            "status": "CURRENT",
            "version": microversions.text(microversions.MAX),
            "min_version": microversions.text(microversions.MIN),
            "updated": UPDATED,
            "links": [{"rel": "self", "href": f"{links.api}/"}],
        }
        if not req.path.startswith("/v2.1"):
            web.send_json(resp, {"versions": [version]})
            return
        version["links"].append(
            {"rel": "describedby", "type": "text/html", "href": "http://docs.openstack.org/"}
        )
        version["media-types"] = [
            {
                "base": "application/json",
                "type": "application/vnd.openstack.compute+json;version=2.1",
            }
        ]
        web.send_json(resp, {"version": version})
