"""The HTTP session of the commands: of openstacksdk and of python-openstackclient."""

from __future__ import annotations

from typing import Any

import requests
from keystoneauth1 import session
from openstack import exceptions


class Session(session.Session):
    """Sends paths whole: clients put names, tags and keys into them as users write them.

    What follows a ``#`` would not be sent, so that ``server unset --tag 'web#1'`` took off the tag
    ``web``; ``..`` means the list above, so that ``--tag ..`` took off all of them.
    """

    def request(self, url: str, method: str, *args: Any, **more: Any) -> requests.Response:
        """Send a request. Raises NotFoundException for a step in a path."""
        return super().request(whole(url), method, *args, **more)


def whole(url: str) -> str:
    """Return the URL of what it names. Raises NotFoundException.

    All queries are pairs; of a name that looks like a pair nobody could say what it is.

    >>> whole("/servers/1/tags/a#b"), whole("/servers/1/tags/a?b"), whole("/servers?name=b")
    ('/servers/1/tags/a%23b', '/servers/1/tags/a%3Fb', '/servers?name=b')
    """
    path, mark, query = url.replace("#", "%23").partition("?")
    if query and "=" not in query:
        path, mark, query = f"{path}%3F{query}", "", ""
    for step in (".", ".."):
        if step in path.split("/"):
            raise exceptions.NotFoundException(f"Nothing is named '{step}'.")
    return f"{path}{mark}{query}"
