"""Projects: the list, another one, its name and description, and its end."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dashboard.answer import Answer, Redirect, View, confirm
from dashboard.cloud import IDENTITY, Call, following, segment
from dashboard.errors import ApiRefused
from dashboard.page import Page
from dashboard.pages import quotas
from dashboard.pages.identity import keystone
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/projects"
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
    return View("identity/projects.html", values, refused.status if refused else 200)


def create(visit: Visit) -> Answer:
    """Make a project, which has no users yet."""
    given = {name: visit.field(name) for name in _FIELDS}
    asked = {name: text for name, text in given.items() if text or name == "name"}
    try:
        made = visit.cloud.post(IDENTITY, PATH, {"project": asked})["project"]
    except ApiRefused as refused:
        return _list(visit, given, refused)
    visit.note(f"The project {made['name']} is made: add its first user.")
    return Redirect(f"{PATH}/{segment(made['id'])}")


def change(visit: Visit) -> Answer:
    """Give a project another name or description."""
    asked = {name: visit.field(name) for name in ("name", "description")}
    return _patch(visit, asked, "The project is changed.")


def ask_disable(visit: Visit) -> Answer:
    """Ask whether a project is to be disabled."""
    project = keystone.one(visit, "project", _id(visit))
    said = "Its users can't log in to it, and its tokens end. Its servers run on."
    said += _own(visit)
    title = f"Disable the project {project['name']}?"
    return confirm(title, said, f"{_page(visit)}/disable", _page(visit), "Disable")


def disable(visit: Visit) -> Answer:
    """Disable a project."""
    return _patch(visit, {"enabled": False}, "The project is disabled.")


def enable(visit: Visit) -> Answer:
    """Enable a project again."""
    return _patch(visit, {"enabled": True}, "The project is enabled.")


def _patch(visit: Visit, asked: Mapping[str, Any], said: str) -> Redirect:
    path = f"{PATH}/{segment(_id(visit))}"
    return visit.change(_page(visit), said, visit.cloud.patch, IDENTITY, path, {"project": asked})


def ask_delete(visit: Visit) -> Answer:
    """Ask whether a project is to be deleted, and say what it has still."""
    path = f"{PATH}/{segment(_id(visit))}"
    found, *answers = visit.cloud.together(Call(IDENTITY, path), *quotas.calls(_id(visit)))
    left = quotas.left_behind(answers)
    said = "The roles of its users are lost, and nobody can log in to it."
    if left:
        said = f"It still has {left}. They are not deleted: only administrators see them. {said}"
    title = f"Delete the project {found['project']['name']}?"
    return confirm(title, said + _own(visit), f"{_page(visit)}/delete", _page(visit))


def delete(visit: Visit) -> Answer:
    """Delete a project."""
    said = "The project is deleted."
    path = f"{PATH}/{segment(_id(visit))}"
    send = visit.cloud.delete
    return visit.change(PATH, said, send, IDENTITY, path, back=_page(visit))


def _own(visit: Visit) -> str:
    is_own = _id(visit) == visit.project_id
    return " You are logged in to it: your session ends." if is_own else ""


def _id(visit: Visit) -> str:
    return visit.params["project_id"]


def _page(visit: Visit) -> str:
    return f"{PATH}/{segment(_id(visit))}"


_PROJECT = PATH + "/{project_id}"
PAGES = (
    Page(PATH, index, May.OPERATE, calls=2),
    Page(PATH, create, May.OPERATE, "POST", calls=3),
    Page(_PROJECT, change, May.OPERATE, "POST"),
    Page(f"{_PROJECT}/disable", ask_disable, May.OPERATE),
    Page(f"{_PROJECT}/disable", disable, May.OPERATE, "POST"),
    Page(f"{_PROJECT}/enable", enable, May.OPERATE, "POST"),
    Page(f"{_PROJECT}/delete", ask_delete, May.OPERATE, calls=5),
    Page(f"{_PROJECT}/delete", delete, May.OPERATE, "POST"),
)
