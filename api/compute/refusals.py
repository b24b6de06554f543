"""Reports refused requests to the conductor, so that `/explanations` can show why.

Reports are best effort: they are sent in the background, and dropped above a rate.
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
from common.errors import MicronovaError, Unavailable
from common.log import logger
from conductor.rpc import ConductorRpc
from conductor.rpc.refusals import Refused
from db.reads.ledger.refusals import ASKED_BY
from web import wsgi

LOG = logger(__name__)

#: refusals of one project that a process reports in one second
_OF_A_PROJECT = 10
#: refusals that wait while the message bus is slow or unreachable
_WAITING = 100
#: seconds without a refusal after which the thread ends
_IDLE_SECONDS = 5.0
#: the status of answers while the conductor is unreachable
_UNAVAILABLE = 503


class Refusals:
    """Falcon middleware: reports requests for a change that were answered with an error."""

    def __init__(
        self, conductor: ConductorRpc, timer: Callable[[], float] = time.monotonic
    ) -> None:
        self._conductor = conductor
        self._timer = timer
        self._waiting: queue.Queue[tuple[RequestContext, Refused]] = queue.Queue(_WAITING)
        self._lock = threading.Lock()
        self._reporter: threading.Thread | None = None
        self._second = 0
        self._reported: collections.Counter[str] = collections.Counter()

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, resource: object, succeeded: bool
    ) -> None:
        """Queue the report of a refusal, if the request was refused and authenticated."""
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
                self._reported.clear()
            self._reported[str(ctxt.project_id)] += 1
            if self._reported[str(ctxt.project_id)] > _OF_A_PROJECT or self._waiting.full():
                return
            self._waiting.put_nowait((ctxt, refused))
            if self._reporter is None:
                self._reporter = threading.Thread(
                    target=self._report, name="refusals", daemon=True
                )
                self._reporter.start()

    def _report(self) -> None:
        """Report refusals until none came for a while."""
        while True:
            try:
                ctxt, refused = self._waiting.get(timeout=_IDLE_SECONDS)
            except queue.Empty:
                with self._lock:
                    if self._waiting.empty():
                        self._reporter = None
                        return
                continue
            try:
                self._conductor.refused(ctxt, refused)
            except Unavailable as error:
                # The client has its answer already.
                LOG.warning(
                    "The refusal of %s is not recorded: %s", ctxt.request_id, error.message
                )
            except Exception:
                LOG.exception("The refusal of %s could not be recorded.", ctxt.request_id)


def _message(data: Any) -> str:
    """Return the message in an answer's body."""
    try:
        [fault] = orjson.loads(data).values()
        return str(fault["message"])
    except (ValueError, TypeError, KeyError, AttributeError):
        return ""
