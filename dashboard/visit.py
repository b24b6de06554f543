"""One request of a browser, as pages see it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from urllib.parse import urlencode

from keystoneauth1.access.access import AccessInfoV3

from dashboard.answer import Redirect
from dashboard.cloud import Cloud, Data
from dashboard.errors import ApiRefused
from dashboard.gathered import Days
from dashboard.rights import May
from dashboard.sessions import Session
from dashboard.unchanged import Unchanged

_MOST_ROWS = 1000


_NUMBER = re.compile(r"-?[0-9]{1,11}")


def as_number(text: str) -> int | str:
    """Return a number of a form; anything else as it is, for the API to refuse."""
    return int(text) if _NUMBER.fullmatch(text) else text


@dataclass
class Visit:
    """A page request: the user, and the arguments."""

    session: Session
    access: AccessInfoV3
    cloud: Cloud
    params: Mapping[str, str]
    """Of the path."""
    query: Mapping[str, str]
    form: Mapping[str, list[str]]
    """Of a POST."""
    page_size: int
    data: Data | None = None
    """What is uploaded, of a PUT."""
    is_fragment: bool = False
    """Whether htmx asks for a part of the page."""
    unchanged: Unchanged = field(default_factory=Unchanged)
    """What is known for all browsers."""
    days: Days = field(default_factory=Days)
    """What was gathered today for all browsers."""

    def may(self, what: May) -> bool:
        """Return whether the user's roles allow something, as far as is known here."""
        return what in self._allowed

    @cached_property
    def _allowed(self) -> frozenset[May]:
        roles = self.access.role_names or ()
        return frozenset(one for one in May if one.allows(roles))

    @property
    def operates(self) -> bool:
        """Whether the user is an administrator."""
        return self.may(May.OPERATE)

    @property
    def project_id(self) -> str:
        """The project of the token."""
        return str(self.access.project_id)

    def field(self, name: str) -> str:
        """Return a field of the form, without blanks around it; empty: it isn't there."""
        return (self.form.get(name) or [""])[0].strip()

    def fields(self, name: str) -> list[str]:
        """Return all values of a field."""
        return [one for one in self.form.get(name, []) if one]

    def note(self, text: str, kind: str = "done", request_id: str = "") -> None:
        """Show a sentence on the next page."""
        self.session = self.session.noting(kind, text, request_id)

    def number(self, name: str) -> int | str:
        """Return a field as a number; any other text unchanged, for the API to refuse."""
        return as_number(self.field(name))

    def changed(self, send: Any, *arguments: Any) -> Any | None:
        """Send a change; return the answer, or None: the next page says why it was refused."""
        try:
            return send(*arguments)
        except ApiRefused as refused:
            self.note(refused.message, "failed", refused.request_id)
            return None

    def change(
        self, path: str, said: str, send: Any, *arguments: Any, back: str = "", kind: str = "done"
    ) -> Redirect:
        """Send a change, and go to a page that says `said`; or why the API refused it, which is
        said on the page `back`, where that is another one."""
        if self.changed(send, *arguments) is None:
            return Redirect(back or path)
        self.note(said, kind)
        return Redirect(path)

    def begin(self, path: str, said: str, send: Any, *arguments: Any, back: str = "") -> Redirect:
        """Send what the cloud then works on: as ``change``."""
        return self.change(path, said, send, *arguments, back=back, kind="begun")

    @property
    def limit(self) -> int:
        """Rows of a list: what is asked for, within bounds."""
        asked = self.query.get("limit", "")
        number = int(asked) if asked.isascii() and asked.isdigit() and len(asked) < 6 else 0
        return min(number, _MOST_ROWS) if number else self.page_size

    def here(self, path: str, **changed: Any) -> str:
        """Return a path with the present query, less what is changed to nothing."""
        asked = {**self.query, **changed}
        kept = {name: value for name, value in asked.items() if value not in (None, "")}
        return f"{path}?{urlencode(kept)}" if kept else path

    def next_page(self, path: str, marker: str) -> str:
        """Return the path of a list's next page; empty: there is none."""
        return self.here(path, marker=marker) if marker else ""
