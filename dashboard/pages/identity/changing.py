"""What may be done to each of Keystone's resources: make, change, disable, enable, delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import IDENTITY, segment
from dashboard.errors import ApiRefused
from dashboard.page import Page
from dashboard.pages.identity import keystone
from dashboard.rights import May
from dashboard.visit import Visit


def _nobody(visit: Visit) -> str:
    return ""


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

    def make(
        self,
        visit: Visit,
        asked: Mapping[str, Any],
        said: str,
        again: Callable[[ApiRefused], View],
    ) -> Answer:
        """Make one, and go to its page; `again` shows the form with why it is refused."""
        try:
            made = visit.cloud.post(IDENTITY, self.listed, {self.kind: asked})[self.kind]
        except ApiRefused as refused:
            return again(refused)
        visit.note(f"The {self.name} {made['name']} is made: {said}")
        return Redirect(f"{self.path}/{segment(made['id'])}")

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
        """The pages of these changes, but for the question before a deletion."""
        one = f"{self.path}/{{{self.kind}_id}}"
        return (
            Page(f"{one}/disable", self.ask_disable, May.OPERATE),
            Page(f"{one}/disable", self.disable, May.OPERATE, "POST"),
            Page(f"{one}/enable", self.enable, May.OPERATE, "POST"),
            Page(f"{one}/delete", self.delete, May.OPERATE, "POST"),
        )
