"""Downloads of images: from where a user says and the operator allows, into the spool.

Once it is in the spool it is handled as an upload. A download sends the conductor a sign of life
every ``KEEP_SECONDS``; without one for ``conductor.images.stale_imports.SILENT_SECONDS`` the
conductor sets the image back to queued. So downloads are not queued in this process.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import ipaddress
import ssl
import threading
import time
from collections.abc import Iterator
from typing import Any

import urllib3
from oslo_config import cfg

from api.image.data import addresses
from api.image.data.addresses import Source
from api.image.data.shares import Shares
from api.image.data.spool import Upload
from api.image.data.uploads import Uploads
from common.context import RequestContext
from common.errors import (
    ConfigurationError,
    Conflict,
    ImageNotFound,
    Invalid,
    MicronovaError,
)
from common.log import logger
from conductor.rpc import ConductorRpc
from db.reads.images.images import Image
from web.pace import Pace

LOG = logger(__name__)

#: downloads of one process, half of them by one project (``shares``)
PLACES = 16
MOST = PLACES // 2
_REDIRECTS = 5
_MOVED = frozenset({301, 302, 303, 307, 308})
_TIMEOUT = urllib3.Timeout(connect=10.0, read=60.0)
_READ_BYTES = 1 << 16
#: seconds for the first of so many bytes, and later for more (``web.pace``)
_PACE_SECONDS, _PACE_BYTES = 60.0, 1 << 16
#: between two signs of life for the conductor
KEEP_SECONDS = 20.0


class Downloads:
    """Downloads of this process; see ``[images]``."""

    def __init__(
        self, conf: cfg.ConfigOpts, uploads: Uploads, keep_seconds: float = KEEP_SECONDS
    ) -> None:
        self.keep_seconds = keep_seconds
        options = conf.images
        try:
            self.allowed = [addresses.parse_pattern(one) for one in options.download_from]
            self._networks = [ipaddress.ip_network(one) for one in options.download_networks]
        except ValueError as error:
            raise ConfigurationError(f"[images] {error}") from error
        self.seconds = float(options.download_seconds)
        self._uploads = uploads
        self._lock = threading.Lock()
        self._pool: concurrent.futures.ThreadPoolExecutor | None = None
        self._shares = Shares(PLACES, "downloads of images from elsewhere")

    def begin(self, ctxt: RequestContext, conductor: ConductorRpc, found: Image, uri: str) -> None:
        """Begin to download an image's data. Raises Invalid, Conflict, Unavailable."""
        first = addresses.source(uri, self.allowed)
        give_back = self._shares.take(ctxt.project_id)
        try:
            task_id = conductor.begin_image_download(ctxt, found.id, uri)
        except BaseException:
            give_back()
            raise
        self._uploads.spool.watch_once()
        download = _Download(self, self._uploads, ctxt, conductor, found, task_id)
        done = self._executor().submit(download.carry_out, first)
        done.add_done_callback(lambda _: give_back())

    def _executor(self) -> concurrent.futures.ThreadPoolExecutor:
        with self._lock:
            if self._pool is None:
                # Made here: a process that was forked has no threads of its parent.
                self._pool = concurrent.futures.ThreadPoolExecutor(PLACES, "image-download")
            return self._pool

    # --- requests

    @contextlib.contextmanager
    def opened(self, first: Source, end: float) -> Iterator[Any]:
        """Open the response at the end of all redirects. Raises Invalid, OSError."""
        asked = first
        for _ in range(_REDIRECTS + 1):
            with self._request(asked) as response:
                if response.status not in _MOVED:
                    if response.status != 200:
                        raise Invalid(f"{asked.origin.host} answered {response.status}.")
                    yield response
                    return
                location = response.headers.get("Location", "")
            asked = addresses.source(_absolute(asked, location), self.allowed)
            if time.monotonic() > end:
                break
        raise Invalid("There are too many redirects.")

    @contextlib.contextmanager
    def _request(self, asked: Source) -> Iterator[Any]:
        origin = asked.origin
        for address in addresses.resolve(origin, self._networks):
            pool = _pool(asked, address)
            try:
                response = pool.request(
                    "GET",
                    asked.target,
                    headers={"Host": _host(asked), "Accept-Encoding": "identity"},
                    redirect=False,
                    retries=False,
                    preload_content=False,
                    decode_content=False,
                    assert_same_host=False,
                )
            except urllib3.exceptions.HTTPError as error:
                pool.close()
                why = f"{origin.host} can't be reached: {type(error).__name__}."
                continue
            try:
                yield response
            finally:
                response.close()
                pool.close()
            return
        raise Invalid(why)


def _pool(asked: Source, address: str) -> urllib3.HTTPConnectionPool:
    origin = asked.origin
    if origin.scheme == "http":
        return urllib3.HTTPConnectionPool(address, origin.port, timeout=_TIMEOUT)
    return urllib3.HTTPSConnectionPool(
        address,
        origin.port,
        timeout=_TIMEOUT,
        ssl_context=ssl.create_default_context(),
        server_hostname=origin.host,
        assert_hostname=origin.host,
    )


def _host(asked: Source) -> str:
    host = f"[{asked.origin.host}]" if ":" in asked.origin.host else asked.origin.host
    return f"{host}:{asked.origin.port}"


def _absolute(asked: Source, location: str) -> str:
    if location.startswith("/") and not location.startswith("//"):
        return f"{asked.origin.scheme}://{_host(asked)}{location}"
    return location


class _Watch:
    """Whether a download was given up, and the response that ends with it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._response: Any = None
        self._why: str | None = None

    def follow(self, response: Any) -> None:
        """Close this response when it is given up. Raises Invalid if it was."""
        with self._lock:
            self._response = response
        self.check()

    def give_up(self, why: str) -> None:
        """Give it up."""
        with self._lock:
            self._why = why
            if self._response is not None:
                # It may have ended by itself.
                with contextlib.suppress(ValueError, RuntimeError):
                    self._response.shutdown()

    def check(self) -> None:
        """Raise Invalid if it was given up."""
        if self._why is not None:
            raise Invalid(self._why)


class _Download:
    """One download."""

    def __init__(
        self,
        downloads: Downloads,
        uploads: Uploads,
        ctxt: RequestContext,
        conductor: ConductorRpc,
        found: Image,
        task_id: str,
    ) -> None:
        self._downloads, self._uploads = downloads, uploads
        self._ctxt, self._conductor = ctxt, conductor
        self._found, self._task_id = found, task_id

    def carry_out(self, first: Source) -> None:
        """Download, check and hand over to the conductor; report a failure to it."""
        try:
            self._carry_out(first)
        except (MicronovaError, OSError, urllib3.exceptions.HTTPError) as error:
            why = error.message if isinstance(error, MicronovaError) else type(error).__name__
            self._failed(f"The download failed: {why}")
        except Exception:
            LOG.exception("The download for image %s failed.", self._found.id)
            self._failed("The download failed.")

    def _carry_out(self, first: Source) -> None:
        found, uploads = self._found, self._uploads
        end = time.monotonic() + self._downloads.seconds
        with (
            uploads.upload(found) as upload,
            self._watched(end, upload) as watch,
            self._downloads.opened(first, end) as response,
        ):
            watch.follow(response)
            upload.take(response.stream(_READ_BYTES))
            watch.check()
            length = response.headers.get("Content-Length", "")
            if length.isascii() and length.isdigit() and int(length) != upload.size_bytes:
                raise Invalid("the connection was closed too early.")
            uploads.deliver(
                found,
                upload,
                lambda data: self._conductor.save_image(self._ctxt, found.id, data, self._task_id),
            )

    @contextlib.contextmanager
    def _watched(self, end: float, upload: Upload) -> Iterator[_Watch]:
        """Keep the import alive, and end it at its time or if it is slow, whatever is sent."""
        watch = _Watch()
        over = threading.Event()

        def look() -> None:
            keep_seconds = self._downloads.keep_seconds
            pace, seen = Pace(_PACE_SECONDS, _PACE_BYTES, time.monotonic()), 0
            while not over.wait(min(keep_seconds, max(0.0, end - time.monotonic()))):
                now, size = time.monotonic(), upload.size_bytes
                pace.progressed(size - seen, now)
                seen = size
                why = "it took too long." if now >= end else ""
                why = why or ("it is too slow." if now >= pace.deadline else self._renew())
                if why:
                    watch.give_up(why)
                    return

        thread = threading.Thread(target=look, name="image-download-watch", daemon=True)
        thread.start()
        try:
            yield watch
        except (OSError, urllib3.exceptions.HTTPError):
            watch.check()
            raise
        finally:
            over.set()
            thread.join()

    def _renew(self) -> str:
        """Report to the conductor that the download continues; return why it must stop, or ""."""
        try:
            self._conductor.renew_image_download(self._ctxt, self._found.id, self._task_id)
        except (Conflict, ImageNotFound) as error:
            return error.message
        except MicronovaError as error:
            LOG.warning("Image %s: %s", self._found.id, error.message)
        return ""

    def _failed(self, why: str) -> None:
        LOG.warning("Image %s: %s", self._found.id, why)
        try:
            self._conductor.fail_image_download(self._ctxt, self._found.id, self._task_id, why)
        except MicronovaError as error:
            # It was deleted, or given up; or the conductor finds out by itself.
            LOG.info("Image %s: %s", self._found.id, error.message)
