"""Requests to placement: headers, and error answers as this project's errors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Any, TypeVar

import orjson
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa
from oslo_context import context as oslo_context

from common.clients.repeating import Repeating
from common.errors import (
    Conflict,
    Forbidden,
    GenerationConflict,
    Invalid,
    MicronovaError,
    NotFound,
    Unavailable,
)

T = TypeVar("T")
SERVICE_TYPE = "placement"
#: retries of a read-decide-write when another writer came in between
ATTEMPTS = 5
#: candidates from trees, generations of consumers, mappings: what the client needs
MICROVERSION = "1.36"
_CONCURRENT = "placement.concurrent_update"
_ERRORS: Mapping[int, type[MicronovaError]] = {
    400: Invalid,
    401: Forbidden,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
}


class Transport:
    """Placement's REST API through a keystoneauth1 adapter; threads may share it."""

    def __init__(self, adapter: ksa_adapter.Adapter) -> None:
        self._adapter = adapter
        self._request = Repeating(adapter, SERVICE_TYPE).request

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """Make one request and return the JSON value of the answer, None for none."""
        headers = {"OpenStack-API-Version": f"{SERVICE_TYPE} {MICROVERSION}"}
        now = oslo_context.get_current()
        if now is not None and now.global_id:
            headers["X-OpenStack-Request-ID"] = now.global_id
        try:
            answer = self._request(method, path, headers, body)
        except ksa.ClientException as error:
            raise Unavailable(f"Placement can't be reached: {type(error).__name__}") from error
        if answer.status_code >= HTTPStatus.BAD_REQUEST:
            raise _error(answer, f"{method} {path.partition('?')[0]}")
        return orjson.loads(answer.content) if answer.content else None


def _error(answer: Any, what: str) -> MicronovaError:
    """Return the error of an answer, with placement's message."""
    status = answer.status_code
    try:
        fault = answer.json()["errors"][0]
    except (ValueError, LookupError, TypeError):
        fault = {}
    text = str(fault.get("detail") or f"{status} from placement").strip()
    if fault.get("code") == _CONCURRENT:
        return GenerationConflict(text)
    return _ERRORS.get(status, Unavailable)(f"{what}: {text}", status=status)


def until_undisturbed(attempt: Callable[[], T]) -> T:
    """Retry a read-decide-write while others write in between; raises GenerationConflict."""
    for _ in range(ATTEMPTS - 1):
        try:
            return attempt()
        except GenerationConflict:
            continue
    return attempt()
