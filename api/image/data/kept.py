"""Downloads of images that users uploaded, if the spool of this host retains them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from api.image.data.shares import Shares
from api.image.data.spool import Spool
from api.image.rights import target
from api.image.store import Store
from api.plain import Call, operation
from common.errors import Forbidden
from web.errors import RangeNotSatisfiable
from web.guard import Reply

_RANGE = re.compile(r"bytes=([0-9]{0,18})-([0-9]{0,18})", re.ASCII)
#: downloads of one process, which projects share
PLACES = 64
_WITH_DATA = frozenset({"active", "deactivated"})


class Kept:
    """The data of an image, to be downloaded."""

    def __init__(self, store: Store, spool: Callable[[], Spool | None]) -> None:
        """``spool``: returns this host's spool, or None if the host retains no uploads."""
        self._store, self._spool = store, spool
        self._shares = Shares(PLACES, "downloads")

    @operation(asks=("download_image",))
    def on_get(self, call: Call, image_id: str) -> Any:
        """Send the data of an image that was uploaded here, or a range of them."""
        found = self._store.find(call.ctxt, image_id)
        if found.status == "queued":
            return Reply(status=204)
        policy = self._store.policy
        policy.check(call.ctxt, "download_image", target(found))
        if found.status == "deactivated" and not policy.allows(call.ctxt, "context_is_admin"):
            raise Forbidden(
                "The requested image has been deactivated. Image data download is forbidden."
            )
        spool = self._spool()
        part = spool.find(found.id) if spool and found.status in _WITH_DATA else None
        if part is None or call.request is None:
            raise Forbidden(
                f"The data of image {found.id} can't be downloaded here: clusters don't "
                "return images, and this host has no copy of the upload. Operators can retain "
                "uploads with [images] keep_data."
            )
        part.closed = self._shares.take(call.ctxt.project_id)
        size = part.size
        headers = {"Accept-Ranges": "bytes"}
        asked = call.request.get_header("Range")
        status = 200
        if asked is not None:
            first, last = _range(asked, size)
            part.narrow(first, last)
            headers["Content-Range"] = f"bytes {first}-{last}/{size}"
            status = 206
        elif found.md5:
            headers["Content-MD5"] = found.md5
        headers["Content-Length"] = str(part.left)
        return Reply(part.pieces(call.request.env), status, headers)


def _range(text: str, size: int) -> tuple[int, int]:
    """Return the first and the last byte that are asked for. Raises RangeNotSatisfiable."""
    asked = _RANGE.fullmatch(text.strip())
    if asked is None or not (asked[1] or asked[2]):
        raise RangeNotSatisfiable("The byte range passed in the Range header is not valid.")
    if asked[1]:
        first, last = int(asked[1]), min(int(asked[2] or size), size - 1)
    else:
        first, last = max(0, size - int(asked[2])), size - 1
    if first > last:
        raise RangeNotSatisfiable("The byte range passed in the Range header is not satisfiable.")
    return first, last
