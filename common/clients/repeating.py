"""Requests of a keystoneauth1 adapter that are sent again and again, for half of the CPU.

At each request keystoneauth1 and requests determine the endpoint in the catalog, the settings of
the environment and the headers, though they are the same for all. Here they send the first request
with a token; those that follow are made like it, and sent by the same transport adapter of
requests, so with the same connections, TLS options, retries and errors.
"""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

import requests
from keystoneauth1 import adapter as ksa_adapter
from keystoneauth1 import exceptions as ksa
from keystoneauth1 import session as ksa_session
from requests.structures import CaseInsensitiveDict
from requests.utils import check_header_validity

#: options of an adapter by which it would do more than send a request
_MORE_TO_DO = (
    *("connect_retries", "status_code_retries", "retriable_status_codes"),
    *("logger", "allow", "global_request_id"),
)
#: where keystoneauth1 writes requests and answers, without their tokens
_LOGGERS = [
    logging.getLogger(f"keystoneauth.session{part}")
    for part in ("", ".request", ".response", ".body", ".request-id")
]
#: paths that requests sends as they are: nothing to encode, no steps
_PLAIN = re.compile(r"/(?!/)[A-Za-z0-9/_-]*(\?[A-Za-z0-9=&%+._-]*)?")
#: answers that keystoneauth1 follows
_REDIRECTS = frozenset({301, 302, 303, 305, 307, 308})
_OF_ONE_REQUEST = ("Content-Length", "Content-Type", "Cookie")


@dataclass(frozen=True, repr=False)
class _Sample:
    """What requests with a token have in common; its repr shows no token."""

    token: Mapping[str, str]
    base: str
    headers: Mapping[str, str]
    settings: Mapping[str, Any]


class Repeating:
    """Sends requests as an adapter would; threads may share it."""

    def __init__(self, adapter: ksa_adapter.Adapter, service_type: str) -> None:
        self._adapter = adapter
        self._service_type = service_type
        self._sample: _Sample | None = None

    def request(
        self, method: str, path: str, headers: Mapping[str, str], body: Any = None
    ) -> requests.Response:
        """Send a request with a JSON body, or without one; return the answer of any status.

        A token that is refused is replaced once. Raises ClientException of keystoneauth1.
        """
        sample = self._sample
        if sample is None or not _PLAIN.fullmatch(path) or not self._is_current(sample):
            return self._first(method, path, headers, body)
        answer = self._repeat(sample, method, path, headers, body)
        if answer.status_code == HTTPStatus.UNAUTHORIZED and self._adapter.invalidate():
            return self._first(method, path, headers, body, allow_reauth=False)
        if answer.status_code in _REDIRECTS:
            # The server did nothing; keystoneauth1 follows it, from now on at once.
            self._sample = None
            return self._first(method, path, headers, body)
        return answer

    def _first(
        self, method: str, path: str, headers: Mapping[str, str], body: Any, **options: Any
    ) -> requests.Response:
        """Send a request through keystoneauth1, and keep what the next ones can repeat."""
        if body is not None:
            options["json"] = body
        answer: requests.Response = self._adapter.request(
            path,
            method,
            headers=headers,
            raise_exc=False,
            endpoint_filter={"service_type": self._service_type},
            **options,
        )
        if type(self._adapter) is ksa_adapter.Adapter:
            self._sample = _sample(self._adapter, answer, path, headers) or self._sample
        return answer

    def _is_current(self, sample: _Sample) -> bool:
        """Return whether a request through keystoneauth1 would be sent as the sample was.

        Raises ClientException when a new token is due and there is none.
        """
        session = self._adapter.session
        http = session.session
        if http.cookies or any(http.hooks.values()):
            return False
        if any(one.isEnabledFor(logging.DEBUG) for one in _LOGGERS):
            return False
        token: Mapping[str, str] | None = session.get_auth_headers(self._adapter.auth)
        return token == sample.token

    def _repeat(
        self, sample: _Sample, method: str, path: str, headers: Mapping[str, str], body: Any
    ) -> requests.Response:
        """Send a request as the sample was. Raises what keystoneauth1 raises."""
        http: requests.Session = self._adapter.session.session
        url = sample.base + path
        try:
            made = _request(sample, method, url, headers, body)
            answer = http.get_adapter(url).send(made, **sample.settings)
            answer.content  # noqa: B018 - reads it, and gives the connection back
        except requests.exceptions.SSLError as error:
            raise ksa.SSLError(f"SSL exception connecting to {url}: {error}") from error
        except requests.exceptions.Timeout as error:
            raise ksa.ConnectTimeout(f"Request to {url} timed out") from error
        except requests.exceptions.ConnectionError as error:
            raise ksa.ConnectFailure(
                f"Unable to establish connection to {url}: {error}"
            ) from error
        except requests.exceptions.RequestException as error:
            raise ksa.UnknownConnectionError(
                f"Unexpected exception for {url}: {error}", error
            ) from error
        http.cookies.update(answer.cookies)
        return answer


def _sample(
    adapter: ksa_adapter.Adapter, answer: requests.Response, path: str, given: Mapping[str, str]
) -> _Sample | None:
    """Return what others can repeat of an answered request; None: nothing."""
    session, auth = adapter.session, adapter.auth
    if type(session) is not ksa_session.Session or any(getattr(adapter, o) for o in _MORE_TO_DO):
        return None
    http, sent = session.session, answer.request
    if type(http) is not requests.Session or http.auth or http.params or answer.history:
        return None
    token, url = _token(session, auth), sent.url or ""
    if not token or not _has(sent.headers, token) or session.get_auth_connection_params(auth):
        return None
    if not answer.ok or not _PLAIN.fullmatch(path) or not url.endswith(path):
        return None
    headers = CaseInsensitiveDict(sent.headers)
    for name in (*_OF_ONE_REQUEST, *given):
        headers.pop(name, None)
    base = url.removesuffix(path)
    settings = http.merge_environment_settings(base, {}, None, session.verify, session.cert)
    return _Sample(dict(token), base, dict(headers), {**settings, "timeout": session.timeout})


def _token(session: ksa_session.Session, auth: Any) -> Mapping[str, str] | None:
    """Return the headers of a login; None: there is none, or none now."""
    try:
        headers: Mapping[str, str] | None = session.get_auth_headers(auth)
    except ksa.ClientException:
        return None  # What was asked is answered; the next request fails where it has to.
    return headers


def _has(headers: Mapping[str, str], others: Mapping[str, str]) -> bool:
    return all(headers.get(name) == value for name, value in others.items())


def _request(
    sample: _Sample, method: str, url: str, given: Mapping[str, str], body: Any
) -> requests.PreparedRequest:
    """Return a request as requests would prepare it. Raises InvalidHeader."""
    made = requests.PreparedRequest()
    made.method, made.url = method, url
    for header in given.items():
        check_header_validity(header)
    made.headers = CaseInsensitiveDict({**sample.headers, **given})
    data = None
    if body is not None:
        made.headers["Content-Type"] = "application/json"
        data = json.dumps(body)
    made.prepare_body(data, None)
    return made
