"""The data of an image: users send them once, agents fetch them, and clusters keep them."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Callable, Collection, Iterator
from typing import Any

import falcon
import sqlalchemy as sa
from oslo_config import cfg

from api.image.data import formats
from api.image.data.kept import Kept
from api.image.data.shares import Shares
from api.image.data.spool import Spool, Upload
from api.image.errors import no_data
from api.image.store import Store
from api.plain import Call, operation
from common.context import RequestContext
from common.errors import Conflict, Gone, ImageNotFound, Invalid, NotFound, TooLarge, Unavailable
from common.log import logger
from common.resources import quotas
from common.rpc import UNKNOWN
from conductor.rpc.images import ImageData
from db.reading import reading
from db.reads.images import image_usage, images
from db.reads.images.image_usage import Usage
from db.reads.images.images import Image
from web import bodies
from web.errors import UnsupportedMedia
from web.guard import Reply

LOG = logger(__name__)

#: the most that one answer to an agent has, bytes: answers are made in memory
PIECE_BYTES = 1 << 22
#: uploads of one process that projects share; the worker reads more bodies at a time
PLACES = 24
#: names what proves that an agent may fetch the data
TOKEN_HEADER = "X-Spool-Token"  # noqa: S105 - a name

_READ_BYTES = 1 << 20
#: after so many bytes it is looked whether the project may send more
_CHECK_BYTES = 64 << 20
_DATA_TYPE = "application/octet-stream"
_RANGE = re.compile(r"bytes=([0-9]{1,18})-([0-9]{1,18})", re.ASCII)
#: seconds between two looks at an image that is being saved: the first, and the longest
_LOOK_SECONDS, _LOOK_MOST_SECONDS = 0.1, 1.0
#: an image with uploaded data; it becomes the name of a file
_ID = re.compile(r"[0-9a-fA-F-]{36}")
_SPOOL = re.compile(r"/v2/images/[^/]+/spool/?")


class Uploads:
    """Uploads of image data to this host; see ``[images]``."""

    def __init__(self, conf: cfg.ConfigOpts, engine: sa.Engine) -> None:
        options = conf.images
        self.fetch_url = options.fetch_url.rstrip("/")
        self.wait_seconds = float(options.upload_wait_seconds)
        self.retains = bool(options.keep_data)
        self.engine = engine
        self.shares = Shares(PLACES, "uploads")
        self.limits = quotas.of_images(conf)
        self.spool = Spool(
            options.spool_dir,
            options.max_upload_gib << 30,
            self._needed,
            options.spool_reserve_mib,
        )

    def deliver(self, found: Image, upload: Upload, take: Callable[[ImageData], None]) -> None:
        """Check data that are whole, and have them taken: from then on they are kept.

        Raises what ``formats.virtual_size`` does, and Gone for an image that was deleted.
        """
        size = formats.virtual_size(
            upload.file, upload.size_bytes, found.disk_format, upload.inspected, found.id
        )
        self.spool.complete(found.id, upload)
        data = ImageData(
            url=f"{self.fetch_url}/v2/images/{found.id}/spool",
            token=upload.token,
            size_bytes=upload.size_bytes,
            virtual_size_bytes=size,
            disk_format=found.disk_format,
            md5=upload.md5,
            sha512=upload.sha512,
        )
        try:
            take(data)
        except ImageNotFound as error:
            raise Gone(
                f"Image {found.id} could not be found after upload. The image may have been "
                "deleted during the upload."
            ) from error
        except Unavailable as error:
            if error.details.get("outcome") == UNKNOWN:
                # The conductor may be taking them while this request ends.
                self.spool.doubt(found.id, upload)
            raise
        upload.is_needed = True
        LOG.info("The data of image %s are here, %d bytes.", found.id, upload.size_bytes)

    def usage(self, project_id: str) -> Usage:
        """Return what the images of a project take up, those that are sent to this host too."""
        with reading(self.engine) as connection:
            return image_usage.read(connection, project_id, self.spool.being_written())

    def require_quota(self, project_id: str | None, size_bytes: int, uploads: int = 0) -> None:
        """Raise TooLarge unless a project may send so many bytes more, in so many more uploads."""
        if project_id is None:
            return
        more = {
            "image_stage_total": size_bytes,
            "image_size_total": size_bytes,
            "image_count_uploading": uploads,
        }
        self.usage(project_id).require(project_id, self.limits, more)

    @contextlib.contextmanager
    def upload(self, found: Image) -> Iterator[Upload]:
        """Write data of an image; see ``Spool.upload``. The bounds of its project are kept."""
        with self.spool.upload(found.id) as upload:
            upload.at_every(
                _CHECK_BYTES, lambda: self.require_quota(found.project_id, _CHECK_BYTES)
            )
            yield upload

    def _needed(self, image_ids: Collection[str]) -> Collection[str]:
        with reading(self.engine) as connection:
            return images.being_stored(connection, image_ids, kept=self.retains)


class ImageFile(Kept):
    """The data of an image."""

    def __init__(self, store: Store, uploads: Uploads) -> None:
        super().__init__(store, lambda: uploads.spool if uploads.retains else None)
        self._uploads = uploads

    @operation(asks=("upload_image",), status=204)
    def on_put(self, call: Call, image_id: str) -> None:
        """Send the data of a queued image; the clusters have them soon after."""
        found = receive(self._store, self._uploads, call, image_id, "saving")
        self._wait(call.ctxt, found.id)

    def _wait(self, ctxt: RequestContext, image_id: str) -> None:
        """Return once a cluster has the image, or later than that seems worth waiting for.

        Clients take a finished upload for an image that can be used.
        """
        end = time.monotonic() + self._uploads.wait_seconds
        pause = _LOOK_SECONDS
        while time.monotonic() < end:
            try:
                if self._store.find(ctxt, image_id).status != "saving":
                    return
            except ImageNotFound:
                return
            time.sleep(pause)
            pause = min(_LOOK_MOST_SECONDS, pause * 1.5)


class SpooledData:
    """Uploaded data that clusters wait for: for agents alone, who have the token."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    @operation(status=206)
    def on_get(self, call: Call, image_id: str) -> Any:
        """Send a part of the data."""
        request = _of(call, None)
        asked = _RANGE.fullmatch(request.get_header("Range") or "")
        token = request.get_header(TOKEN_HEADER)
        if not token or asked is None or _ID.fullmatch(image_id) is None:
            raise NotFound
        first = int(asked[1])
        last = min(int(asked[2]), first + PIECE_BYTES - 1)
        data, size = self._uploads.spool.read(image_id, token, first, last)
        headers = {"Content-Range": f"bytes {first}-{first + len(data) - 1}/{size}"}
        return Reply(data, headers=headers)


def is_spool(path: str) -> bool:
    """Return whether a path is of ``SpooledData``, which checks a token of its own."""
    return _SPOOL.fullmatch(path) is not None


class StagedData:
    """Data that wait to be imported."""

    def __init__(self, store: Store, uploads: Uploads) -> None:
        self._store, self._uploads = store, uploads

    @operation(asks=("upload_image",), status=204)
    def on_put(self, call: Call, image_id: str) -> None:
        """Send the data of a queued image, which no cluster gets before they are imported."""
        receive(self._store, self._uploads, call, image_id, "uploading")


class UsageInfo:
    """``/v2/info/usage``."""

    def __init__(self, uploads: Uploads) -> None:
        self._uploads = uploads

    @operation()
    def on_get(self, call: Call) -> Any:
        """Show the limits of the project's images, and what it uses of them."""
        usage = self._uploads.usage(call.ctxt.project_id or "")
        return {"usage": usage.shown(self._uploads.limits)}


def receive(store: Store, uploads: Uploads, call: Call, image_id: str, status: str) -> Image:
    """Take the body of a request as the data of an image, which gets this status; return it."""
    ctxt = call.ctxt
    found = store.find(ctxt, image_id)
    if not uploads.fetch_url:
        no_data(found.id)
    uploads.spool.watch_once()
    request = _of(call)
    store.changeable(ctxt, found.id, "upload_image")
    require_queued(found, status)
    size = request.content_length or 0
    if size > uploads.spool.most_bytes:
        raise TooLarge("The incoming image is too large.")
    uploads.spool.room.require(size)
    uploads.require_quota(found.project_id, size, uploads=1)
    conductor = store.conductor(ctxt, found.id)
    take = conductor.save_image if status == "saving" else conductor.stage_image
    with uploads.shares.place(ctxt.project_id), uploads.upload(found) as upload:
        upload.take(bodies.pieces(request, _READ_BYTES))
        uploads.deliver(found, upload, lambda data: take(ctxt, found.id, data))
    return found


def _of(call: Call, kind: str | None = _DATA_TYPE) -> falcon.Request:
    """Return the request. Raises UnsupportedMedia if its body is of another type."""
    request = call.request
    if request is None:
        raise Invalid("There is no body.")
    given = (request.content_type or "").partition(";")[0].strip().lower()
    if kind is not None and given != kind:
        raise UnsupportedMedia(f"The data of an image are {kind}, not {given or 'of no type'}.")
    return request


def require_queued(found: Image, status: str) -> None:
    """Raise what Glance raises for an image that can't get data, and this status, now."""
    if found.status != "queued":
        raise Conflict(f"Image status transition from {found.status} to {status} is not allowed")
    missing = [name for name in ("disk_format", "container_format") if not getattr(found, name)]
    if missing:
        raise Invalid(f"Properties {', '.join(missing)} must be set prior to saving data.")
