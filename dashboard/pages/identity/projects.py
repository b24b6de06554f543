"""Projects: the list, another one, its name and description, and its end."""

from __future__ import annotations

from dashboard.answer import Answer
from dashboard.cloud import IDENTITY, Call
from dashboard.page import Page
from dashboard.pages import quotas
from dashboard.pages.identity.resource import Resource
from dashboard.rights import May
from dashboard.visit import Visit

PROJECT = Resource(
    "project",
    "Its users can't log in to it, and its tokens end. Its servers run on.",
    lambda visit: visit.project_id,
    "You are logged in to it: your session ends.",
    first="add its first user.",
)


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


PAGES = (
    *PROJECT.pages,
    Page(f"{PROJECT.path}/{{project_id}}/delete", ask_delete, May.OPERATE, calls=5),
)
