"""Keystone: log in, choose a project, change the password, log out."""

from __future__ import annotations

import datetime
import http
from dataclasses import dataclass, field
from typing import Any

import requests
from keystoneauth1 import exceptions as ksa_exceptions
from keystoneauth1.session import Session as HttpSession

from dashboard.cloud import message_of, segment
from dashboard.errors import ApiRefused, ApiUnreachable, LoginFailed, TooManyLogins

#: projects that a session offers
_MOST = 200


@dataclass(frozen=True)
class Token:
    """A token and Keystone's body of it."""

    id: str = field(repr=False)
    body: dict[str, Any] = field(repr=False)

    @property
    def until(self) -> float:
        """When it ends, in seconds since the epoch."""
        text = str(self.body["token"]["expires_at"])
        return datetime.datetime.fromisoformat(text).timestamp()


class Identity:
    """Keystone's tokens, by its API."""

    def __init__(self, http: HttpSession, auth_url: str, seconds: float) -> None:
        base = auth_url.rstrip("/")
        self._base = base if base.endswith("/v3") else f"{base}/v3"
        self._http, self._seconds = http, seconds

    def log_in(self, user: str, password: str, domain: str, address: str) -> Token:
        """Return an unscoped token. Raises LoginFailed, TooManyLogins.

        Keystone may count those that fail by the browser's address.
        """
        named = {"name": user, "domain": {"name": domain}, "password": password}
        method = {"methods": ["password"], "password": {"user": named}}
        return self._token(method, "unscoped", {"X-Forwarded-For": address})

    def scoped(self, token: str, project_id: str) -> Token:
        """Return a token for a project. Raises LoginFailed where the user has no role there."""
        method = {"methods": ["token"], "token": {"id": token}}
        return self._token(method, {"project": {"id": project_id}})

    def projects(self, token: str) -> tuple[tuple[str, str], ...]:
        """Return (ID, name) of the projects that a token's user has a role on, by name."""
        found = self._send("GET", "/auth/projects", {"X-Auth-Token": token}).json()["projects"]
        pairs = sorted((str(one["name"]), str(one["id"])) for one in found if one["enabled"])
        return tuple((key, name) for name, key in pairs[:_MOST])

    def revoke(self, token: str) -> None:
        """Revoke a token. Raises ApiRefused or ApiUnreachable."""
        self._send("DELETE", "/auth/tokens", {"X-Auth-Token": token, "X-Subject-Token": token})

    def change_password(self, user_id: str, old: str, new: str, address: str) -> None:
        """Change a user's password, which revokes all of the user's tokens.

        Raises LoginFailed where the old one is wrong, TooManyLogins, ApiUnreachable, and
        ApiRefused with Keystone's sentence, such as what it demands of passwords.
        """
        body = {"user": {"original_password": old, "password": new}}
        path = f"/users/{segment(user_id)}/password"
        answer = self._request("POST", path, {"X-Forwarded-For": address}, body)
        status = answer.status_code
        if status >= 500:
            raise ApiUnreachable("Keystone can't answer now.")
        if status == http.HTTPStatus.UNAUTHORIZED:
            raise LoginFailed("The present password is wrong.")
        if status == http.HTTPStatus.TOO_MANY_REQUESTS:
            raise TooManyLogins
        if status >= 400:
            sentence = message_of(answer) or "Keystone refuses the request."
            raise ApiRefused(sentence, status=status)

    def _token(
        self, method: dict[str, Any], scope: Any, headers: dict[str, str] | None = None
    ) -> Token:
        body = {"auth": {"identity": method, "scope": scope}}
        try:
            answer = self._send("POST", "/auth/tokens", headers or {}, body)
        except ApiRefused as error:
            if error.status >= 500:
                raise ApiUnreachable("Keystone can't answer now.") from error
            if error.status == http.HTTPStatus.TOO_MANY_REQUESTS:
                raise TooManyLogins from error
            raise LoginFailed from error
        return Token(answer.headers["X-Subject-Token"], answer.json())

    def _send(
        self, method: str, path: str, headers: dict[str, str], body: Any = None
    ) -> requests.Response:
        answer = self._request(method, path, headers, body)
        if answer.status_code >= 400:
            raise ApiRefused("Keystone refuses the request.", status=answer.status_code)
        return answer

    def _request(
        self, method: str, path: str, headers: dict[str, str], body: Any = None
    ) -> requests.Response:
        try:
            answer: requests.Response = self._http.request(
                self._base + path,
                method,
                authenticated=False,
                headers=headers,
                json=body,
                raise_exc=False,
                redirect=False,
                log=False,
                timeout=self._seconds,
            )
        except (ksa_exceptions.ConnectFailure, requests.RequestException) as error:
            raise ApiUnreachable("Keystone can't be reached.") from error
        return answer
