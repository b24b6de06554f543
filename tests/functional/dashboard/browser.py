"""A browser without JavaScript: follows links and redirects, sends the forms of pages.

Every answer is checked for what all of them owe: headers, nothing inline, no secret inside.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urljoin, urlsplit

import requests

from dashboard.sessions import Session, Sessions
from dashboard.sessions.sqlite import SqliteStore
from tests.functional.cloud import EmbeddedCloud, eventually

#: what a person is called here → their part of clouds.yaml
PEOPLE: Mapping[str, str] = {
    "member": "micronova-demo",
    "reader": "micronova-reader",
    "admin": "micronova-admin",
}
SESSION_COOKIE = "micronova-session"
IDLE_SECONDS = 1800


@dataclass
class Form:
    """A form and what its fields hold."""

    action: str
    fields: dict[str, str] = field(default_factory=dict)
    choices: dict[str, dict[str, str]] = field(default_factory=dict)
    """Of each select: text → value."""
    changes: bool = False
    """Whether it is sent by POST."""


class Parsed(HTMLParser):
    """What a test looks at in a page."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.forms: list[Form] = []
        self.links: list[str] = []
        self.frames: list[str] = []
        self.inline: list[str] = []
        """Scripts and styles that stand in the page itself."""
        self.words: list[str] = []
        self._select = ""
        self._option: str | None = None
        self._is_chosen = False
        self._area = ""
        self.feed(text)

    @property
    def text(self) -> str:
        """The words that a person reads."""
        return " ".join(" ".join(self.words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        if tag == "style" or (tag == "script" and "src" not in given):
            self.inline.append(tag)
        self.inline += [f"{tag} {name}" for name in given if name.startswith(("on", "style"))]
        if tag == "a":
            self.links.append(given.get("href", ""))
        elif tag == "iframe":
            self.frames.append(given["src"])
        elif tag == "form":
            self.forms.append(Form(given["action"], changes=given.get("method") == "post"))
        elif tag == "textarea" and self.forms:
            self._area = given["name"]
            self.forms[-1].fields[self._area] = ""
        elif tag == "input" and self.forms and given.get("type") == "radio":
            choices = self.forms[-1].choices.setdefault(given["name"], {})
            choices[given["data-text"]] = given["value"]
            if "checked" in given:
                self.forms[-1].fields[given["name"]] = given["value"]
        elif tag == "input" and self.forms and "name" in given and given.get("type") != "checkbox":
            self.forms[-1].fields[given["name"]] = given.get("value", "")
        elif tag == "select":
            self._select = given["name"]
            self.forms[-1].choices[self._select] = {}
        elif tag == "option":
            self._option = given.get("value")
            is_first = self._select not in self.forms[-1].fields
            self._is_chosen = is_first or "selected" in given

    def handle_data(self, data: str) -> None:
        if self._select and data.strip():
            value = data if self._option is None else self._option
            self.forms[-1].choices[self._select][data.strip()] = value
            if self._is_chosen:
                self.forms[-1].fields[self._select] = value
            return
        if self._area:
            self.forms[-1].fields[self._area] += data
            return
        self.words.append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag == "select":
            self._select = ""
        elif tag == "textarea":
            self._area = ""


class Site(Protocol):
    """A cloud with a dashboard."""

    @property
    def base_url(self) -> str: ...

    @property
    def state_dir(self) -> Path: ...

    def config(self, name: str) -> Any: ...


class Browser:
    """One person's browser."""

    def __init__(self, cloud: Site) -> None:
        self.cloud: Any = cloud
        self.base = f"{cloud.base_url}/dashboard"
        self.origin = cloud.base_url
        self.state_dir = cloud.state_dir / "dashboard"
        """Where the dashboard stores sessions."""
        self.http = requests.Session()
        self.http.trust_env = False
        self.http.hooks["response"].append(self._check)
        self.secrets: list[str] = []
        self.page = requests.Response()

    # --- going about

    def get(self, path: str = "/", **more: Any) -> Parsed:
        """Open a page."""
        self.page = self.http.get(self.url(path), timeout=60, **more)
        return self.parsed

    def submit(self, action: str, **fields: str) -> Parsed:
        """Send a form of the present page, as it is but for some fields."""
        form = self.form(action)
        return self.post(action, {**form.fields, **fields})

    def post(
        self, action: str, data: Mapping[str, str], headers: Mapping[str, str] | None = None
    ) -> Parsed:
        """Send fields, as the present page's site."""
        sent = {"Origin": self.origin, "Sec-Fetch-Site": "same-origin", **(headers or {})}
        self.page = self.http.post(self.url(action), data=data, headers=sent, timeout=60)
        return self.parsed

    def url(self, path: str) -> str:
        """Return the address of a page."""
        return path if "://" in path else f"{self.base}{path}"

    # --- what there is

    @property
    def status(self) -> int:
        """The status of the present page."""
        return self.page.status_code

    @property
    def path(self) -> str:
        """Where the browser is, below the dashboard's root."""
        return urlsplit(self.page.url).path.removeprefix("/dashboard")

    @property
    def parsed(self) -> Parsed:
        """The present page."""
        return Parsed(self.page.text)

    @property
    def calls(self) -> int:
        """How many requests to APIs the present page took."""
        found = re.search(r'desc="(\d+) calls"', self.page.headers["Server-Timing"])
        assert found is not None
        return int(found[1])

    def form(self, action: str) -> Form:
        """Return the form of the present page that is sent there; the search is the last one."""
        wanted = urljoin(self.base, f"/dashboard{action}")
        found = [one for one in self.parsed.forms if urljoin(self.base, one.action) == wanted]
        assert found, f"no form for {action} in {self.page.text}"
        return max(found, key=lambda one: one.changes)

    def has_form(self, action: str) -> bool:
        """Return whether the present page can send something there."""
        return any(one.action.endswith(action) for one in self.parsed.forms)

    def until(self, path: str, true: Callable[[Parsed], Any], seconds: float = 60) -> Parsed:
        """Reload a page until something is true of it."""
        eventually(lambda: true(self.get(path)), seconds, 0.2)
        return self.parsed

    # --- who it is

    def log_in(self, person: str = "member", next_path: str = "", **fields: str) -> Parsed:
        """Log in by the form; the page that follows."""
        given = self.cloud.config(PEOPLE[person]).auth
        self.get("/login", params={"next": next_path} if next_path else None)
        found = self.submit(
            "/login",
            **{
                "user": given["username"],
                "password": given["password"],
                "project": given["project_name"],
                **fields,
            },
        )
        if SESSION_COOKIE in self.http.cookies:
            self.secrets = [self.session.token, given["password"], self.name]
        return found

    @property
    def name(self) -> str:
        """The ID of the session."""
        return str(self.http.cookies[SESSION_COOKIE])

    @property
    def csrf(self) -> str:
        """The session's own CSRF token."""
        return self.session.csrf

    @property
    def session(self) -> Session:
        """What the server stores of it."""
        session = kept_in(self.state_dir).read(self.name)
        assert session is not None
        return session

    def _check(self, answer: requests.Response, **_more: Any) -> None:
        """Check what every answer owes."""
        assert answer.status_code != 500, answer.text
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
        assert answer.headers["Cache-Control"] == "no-store"
        assert Parsed(answer.text).inline == []
        for secret in self.secrets:
            assert secret not in answer.text
            others = {**answer.headers, "set-cookie": ""}
            assert secret not in str(others)
        for token in self.secrets[:2]:
            assert token not in answer.headers.get("set-cookie", "")


def kept(cloud: EmbeddedCloud) -> Sessions:
    """Return the sessions of a cloud's dashboard, as it reads them itself."""
    return kept_in(cloud.state_dir / "dashboard")


def kept_in(folder: Path) -> Sessions:
    """Return the sessions of a dashboard's state directory."""
    key = (folder / "session.key").read_bytes()
    return Sessions(SqliteStore(folder / "sessions.sqlite"), key, IDLE_SECONDS, time.time)
