"""Keystone's resources: the list of each, and what may be done to one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from common.errors import MicronovaError
from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import IDENTITY, Call, following, segment
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.rights import May
from dashboard.visit import Visit


def _nobody(visit: Visit) -> str:
    return ""


def _domains(answer: Any) -> Mapping[str, Any]:
    return {"domains": keystone.domains_of(answer)}


@dataclass(frozen=True)
class Resource:
    """Projects, users, groups or roles."""

    kind: str
    """As Keystone's bodies call one of them."""
    disabled: str = ""
    """What to disable one means."""
    own_id: Callable[[Visit], str] = _nobody
    """Returns which one the visitor is, or is logged in to."""
    own: str = ""
    """What becomes of the visitor then."""
    shown_at: str = ""
    """The path of our pages, where it isn't Keystone's."""
    title: str = ""
    """What pages call one of them, where it isn't `kind`."""
    first: str = ""
    """What the page of a new one says of it."""
    edited: tuple[str, ...] = ("name", "description")
    """The fields of the form that changes one."""
    beside: Call = keystone.DOMAINS
    """The request whose answer the list shows beside them,"""
    shown: Callable[[Any], Mapping[str, Any]] = _domains
    """and the values of the list's template that are made of that answer."""

    @property
    def name(self) -> str:
        """What pages call one of them."""
        return self.title or self.kind

    @property
    def path(self) -> str:
        """The path of all of them, of our pages."""
        return self.shown_at or self.listed

    @property
    def listed(self) -> str:
        """The path of all of them in Keystone."""
        return f"/{self.kind}s"

    def key(self, visit: Visit) -> str:
        """Return the ID of the present page's."""
        return visit.params[f"{self.kind}_id"]

    def page(self, visit: Visit) -> str:
        """Return the path of the present page's, of our pages."""
        return f"{self.path}/{segment(self.key(visit))}"

    def api(self, visit: Visit) -> str:
        """Return the path of the present page's in Keystone."""
        return f"{self.listed}/{segment(self.key(visit))}"

    def index(self, visit: Visit) -> Answer:
        """List a page of them, with the form for another one."""
        return self.listing(visit, dict.fromkeys((*self.edited, "domain_id"), ""))

    def listing(
        self, visit: Visit, given: Mapping[str, str], refused: MicronovaError | None = None
    ) -> View:
        """Return the list; its form has what is `given`, and why that is refused."""
        kinds = f"{self.kind}s"
        beside, found = visit.cloud.together(self.beside, keystone.page_of(visit, self.listed))
        values = {
            kinds: keystone.by_name(found[kinds]),
            "asked": visit.query,
            "given": given,
            "refused": refused,
            "following": visit.next_page(self.path, following(found, kinds)),
            **self.shown(beside),
        }
        return View(f"identity/{kinds}.html", values, status_of(refused))

    def given(self, visit: Visit) -> dict[str, str]:
        """Return the fields of the form for another one."""
        return {name: visit.field(name) for name in (*self.edited, "domain_id")}

    def create(self, visit: Visit) -> Answer:
        """Make one, and go to its page."""
        return self.make(visit, self.given(visit))

    def make(self, visit: Visit, given: Mapping[str, str], **more: str) -> Answer:
        """Make one of the form's fields and of `more`; a refusal is shown above the form."""
        asked = {name: text for name, text in given.items() if text or name == "name"} | more
        try:
            made = visit.cloud.post(IDENTITY, self.listed, {self.kind: asked})[self.kind]
        except ApiRefused as refused:
            return self.listing(visit, given, refused)
        visit.note(f"The {self.name} {made['name']} is made: {self.first}")
        return Redirect(f"{self.path}/{segment(made['id'])}")

    def edit(self, visit: Visit) -> Answer:
        """Change the fields of one."""
        asked = {name: visit.field(name) for name in self.edited}
        return self.change(visit, asked, f"The {self.name} is changed.")

    def change(self, visit: Visit, asked: Mapping[str, Any], said: str) -> Redirect:
        """Change one."""
        body = {self.kind: asked}
        send = visit.cloud.patch
        return visit.change(self.page(visit), said, send, IDENTITY, self.api(visit), body)

    def ask(self, visit: Visit, name: str, said: str, change: str) -> View:
        """Ask before a change, which is named in its path as on its button."""
        if self.key(visit) == self.own_id(visit):
            said = f"{said} {self.own}"
        page = self.page(visit)
        title = f"{change.capitalize()} the {self.name} {name}?"
        return confirm(title, said, f"{page}/{change}", page, change.capitalize())

    def ask_disable(self, visit: Visit) -> Answer:
        """Ask whether one is to be disabled."""
        name = keystone.one(visit, self.kind, self.key(visit))["name"]
        return self.ask(visit, str(name), self.disabled, "disable")

    def disable(self, visit: Visit) -> Answer:
        """Disable one."""
        return self.change(visit, {"enabled": False}, f"The {self.kind} is disabled.")

    def enable(self, visit: Visit) -> Answer:
        """Enable one again."""
        return self.change(visit, {"enabled": True}, f"The {self.kind} is enabled.")

    def delete(self, visit: Visit) -> Answer:
        """Delete one."""
        page, send = self.page(visit), visit.cloud.delete
        said = f"The {self.name} is deleted."
        return visit.change(self.path, said, send, IDENTITY, self.api(visit), back=page)

    @property
    def pages(self) -> tuple[Page, ...]:
        """The pages of all of this, but for the question before a deletion."""
        one = f"{self.path}/{{{self.kind}_id}}"
        return (
            Page(self.path, self.index, May.OPERATE, calls=2),
            Page(self.path, self.create, May.OPERATE, "POST", calls=3),
            Page(one, self.edit, May.OPERATE, "POST"),
            Page(f"{one}/delete", self.delete, May.OPERATE, "POST"),
            *(self._switches(one) if self.disabled else ()),
        )

    def _switches(self, one: str) -> tuple[Page, ...]:
        return (
            Page(f"{one}/disable", self.ask_disable, May.OPERATE),
            Page(f"{one}/disable", self.disable, May.OPERATE, "POST"),
            Page(f"{one}/enable", self.enable, May.OPERATE, "POST"),
        )
