"""Change one's own password, which ends the session."""

from __future__ import annotations

import falcon

from common.errors import Invalid
from dashboard import attempts, security
from dashboard.answer import View
from dashboard.errors import ApiRefused, LoginFailed, TooManyLogins, status_of
from dashboard.guard import SESSION, Site
from dashboard.visit import Visit

_FIELDS = ("old", "new", "again")
_LONGEST = 2048


class ChangePassword:
    """The form's target: it isn't a page, as it ends the session."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Change it and have the user log in, or say why it is refused."""
        name, session = self._site.session(req)
        visit = self._site.visit(req, {}, name, session)
        req.context.visit = visit
        try:
            self._change(visit, security.address(req))
        except (ApiRefused, Invalid, LoginFailed, TooManyLogins) as error:
            self._site.send(
                req,
                resp,
                View("password.html", {"message": error.message}, status_of(error)),
                visit,
            )
            return
        # Keystone has revoked its token.
        self._site.sessions.end(name)
        security.set_cookie(req, resp, SESSION, "", -1)
        self._site.go(req, resp, "/login?changed=1")

    def _change(self, visit: Visit, address: str) -> None:
        # blanks around a password are a part of it
        old, new, again = ((visit.form.get(one) or [""])[0] for one in _FIELDS)
        if not old or not new or max(map(len, (old, new))) > _LONGEST:
            raise Invalid("Give the present password and a new one.")
        if new != again:
            raise Invalid("The two new passwords differ.")
        access = visit.access
        attempts.counted(
            self._site,
            (str(access.username), str(access.user_domain_name), address),
            lambda: self._site.identity.change_password(str(access.user_id), old, new, address),
        )
