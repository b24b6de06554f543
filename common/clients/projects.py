"""Check in Keystone, with the services' own login, whether projects exist."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1 import plugin as ksa_plugin

from common.log import logger

LOG = logger(__name__)

#: for so long a project that was there is believed to be there
REMEMBERED_SECONDS = 60.0
_MOST_REMEMBERED = 10_000
_TIMEOUT_SECONDS = 10


class Projects:
    """Asks the Keystone that ``session`` (keystoneauth1's) logs in to; threads may share it."""

    def __init__(self, session: Any, timer: Callable[[], float] = time.monotonic) -> None:
        self._session, self._timer = session, timer
        self._lock = threading.Lock()
        self._seen: dict[str, float] = {}

    def missing(self, project_id: str) -> bool:
        """Return whether Keystone says that there is no such project; False where it doesn't say.

        At most one request; none for a project that was there a minute ago.
        """
        with self._lock:
            if self._timer() - self._seen.get(project_id, float("-inf")) < REMEMBERED_SECONDS:
                return False
        status = self._status(project_id)
        if status == 404:
            return True
        if status == 200:
            self._remember(project_id)
        else:
            LOG.info("Keystone doesn't answer whether project %s exists: %s", project_id, status)
        return False

    def _status(self, project_id: str) -> int | str:
        """Return the status of the answer, or why there is none."""
        try:
            answer = self._session.get(
                f"/projects/{quote(project_id, safe='')}",
                endpoint_filter={
                    "interface": ksa_plugin.AUTH_INTERFACE,
                    "service_type": "identity",
                    "version": (3, 0),
                },
                raise_exc=False,
                timeout=_TIMEOUT_SECONDS,
            )
        except ksa_exceptions.ClientException as error:
            return str(error) or type(error).__name__
        return int(answer.status_code)

    def _remember(self, project_id: str) -> None:
        with self._lock:
            if len(self._seen) >= _MOST_REMEMBERED:
                self._seen.clear()
            self._seen[project_id] = self._timer()
