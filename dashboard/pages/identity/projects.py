"""Projects: the list, another one, its name and description, and its end."""

from __future__ import annotations

from collections.abc import Mapping

from dashboard.answer import Answer, View
from dashboard.cloud import IDENTITY, Call, following
from dashboard.errors import ApiRefused, status_of
from dashboard.page import Page
from dashboard.pages import quotas
from dashboard.pages.identity import keystone
from dashboard.pages.identity.changing import Resource
from dashboard.rights import May
from dashboard.visit import Visit

PROJECT = Resource(
    "project",
    "Its users can't log in to it, and its tokens end. Its servers run on.",
    lambda visit: visit.project_id,
    "You are logged in to it: your session ends.",
)
PATH = PROJECT.path
_FIELDS = ("name", "description", "domain_id")


def index(visit: Visit) -> Answer:
    """List a page of projects, with the form for another one."""
    return _list(visit, dict.fromkeys(_FIELDS, ""))


def _list(visit: Visit, given: Mapping[str, str], refused: ApiRefused | None = None) -> View:
    domains, found = visit.cloud.together(keystone.DOMAINS, keystone.page_of(visit, PATH))
    values = {
        "projects": keystone.by_name(found["projects"]),
        "domains": keystone.domains_of(domains),
        "asked": visit.query,
        "given": given,
        "refused": refused,
        "following": visit.next_page(PATH, following(found, "projects")),
    }
    return View("identity/projects.html", values, status_of(refused))


def create(visit: Visit) -> Answer:
    """Make a project, which has no users yet."""
    given = {name: visit.field(name) for name in _FIELDS}
    asked = {name: text for name, text in given.items() if text or name == "name"}
    said = "add its first user."
    return PROJECT.make(visit, asked, said, lambda refused: _list(visit, given, refused))


def change(visit: Visit) -> Answer:
    """Give a project another name or description."""
    asked = {name: visit.field(name) for name in ("name", "description")}
    return PROJECT.change(visit, asked, "The project is changed.")


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a project is to be deleted, and say what it owns still."""
    found, *answers = visit.cloud.together(
        Call(IDENTITY, PROJECT.api(visit)), *quotas.calls(PROJECT.key(visit))
    )
    left = quotas.left_behind(answers)
    said = "The roles of its users are lost, and nobody can log in to it."
    if left:
        said = f"It still has {left}. They are not deleted: only administrators see them. {said}"
    return PROJECT.ask(visit, found["project"]["name"], said, "delete")


_PROJECT = PATH + "/{project_id}"
PAGES = (
    Page(PATH, index, May.OPERATE, calls=2),
    Page(PATH, create, May.OPERATE, "POST", calls=3),
    Page(_PROJECT, change, May.OPERATE, "POST"),
    Page(f"{_PROJECT}/delete", ask_delete, May.OPERATE, calls=5),
    *PROJECT.pages,
)
