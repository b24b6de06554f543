"""Tells the conductor of requests that are refused, so that `/explanations` can say why.

Nobody waits for it and nothing hangs on it: more than a little at a time is dropped.
"""

from __future__ import annotations

import collections
import queue
import threading
import time
from collections.abc import Callable
from typing import Any

import falcon
import orjson

from common import clock
from common.context import RequestContext
from common.errors import MicronovaError
from common.log import logger
from conductor.client import ConductorClient
from conductor.messages import Refused
from db.reads.refusals import ASKED_BY
from web import wsgi

LOG = logger(__name__)

#: refusals of one project that are told within a second, by one process of the API
_OF_A_PROJECT = 10
#: refusals that wait, for a message bus that is slow or away
_WAITING = 100
#: seconds without one after which nobody waits for more
_IDLE_SECONDS = 5.0
#: the conductor can't be told just now
_UNAVAILABLE = 503


class Refusals:
    """Falcon middleware: what would have changed something, and was answered with an error."""

    def __init__(
        self, conductor: ConductorClient, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._conductor = conductor
        self._timer = timer
        self._waiting: queue.Queue[tuple[RequestContext, Refused]] = queue.Queue(_WAITING)
        self._lock = threading.Lock()
        self._teller: threading.Thread | None = None
        self._second = 0
        self._told: collections.Counter[str] = collections.Counter()

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        """Have the refusal told, if there is one, of somebody whom we know."""
        status = resp.status_code
        if req.method in wsgi.ONLY_LOOK or status < 400 or status == _UNAVAILABLE:
            return
        ctxt: RequestContext | None = getattr(req.context, "ctxt", None)
        if ctxt is None or not ctxt.user_id or not ctxt.project_id:
            return
        error = getattr(req.context, "error", None)
        refused = Refused(
            req.method,
            req.path,
            status,
            _message(resp.data),
            wsgi.received_at(req),
            clock.utcnow(),
            {
                **(error.details if isinstance(error, MicronovaError) and status != 500 else {}),
                ASKED_BY: {"user": ctxt.user_name, "project": ctxt.project_name},
            },
        )
        self._add(ctxt, refused)

    def _add(self, ctxt: RequestContext, refused: Refused) -> None:
        with self._lock:
            second = int(self._timer())
            if second != self._second:
                self._second = second
                self._told.clear()
            self._told[str(ctxt.project_id)] += 1
            if self._told[str(ctxt.project_id)] > _OF_A_PROJECT or self._waiting.full():
                return
            self._waiting.put_nowait((ctxt, refused))
            if self._teller is None:
                self._teller = threading.Thread(target=self._tell, name="refusals", daemon=True)
                self._teller.start()

    def _tell(self) -> None:
        """Tell until there was nothing to tell for a while."""
        while True:
            try:
                ctxt, refused = self._waiting.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._teller = None
                        return
                continue
            try:
                self._conductor.refused(ctxt, refused)
            except Exception:
                # The answer is out already.
                LOG.exception("That %s was refused is not kept.", ctxt.request_id)


def _message(data: Any) -> str:
    """What the answer says to people."""
    try:
        [fault] = orjson.loads(data).values()
        return str(fault["message"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
