"""Log in, choose a project, log out: the pages that begin and end sessions."""

from __future__ import annotations

import secrets
from collections.abc import Mapping

import falcon

from common.log import logger
from dashboard import attempts, security
from dashboard.answer import View
from dashboard.errors import ApiRefused, ApiUnreachable, LoginFailed, TooManyLogins
from dashboard.guard import CSRF_FIELD, LOGIN, SESSION, THEME, Site, check_forged, form_of, now
from dashboard.identity import Token
from dashboard.sessions import Session

LOG = logger(__name__)

_YEAR_SECONDS = 31_536_000
_LONGEST = 255


class Login:
    """The login form."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Show it."""
        self._form(req, resp, {"next": req.get_param("next") or ""})

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Log in, and go where the user wanted to."""
        form = {name: values[0] for name, values in form_of(req).items()}
        mark = security.read_cookie(req, LOGIN)
        check_forged(req, form.get(CSRF_FIELD, ""), self._site.sessions.signed(mark))
        given = {name: form.get(name, "") for name in ("user", "domain", "next")}
        try:
            token, projects = self._log_in(req, form)
        except (LoginFailed, TooManyLogins) as error:
            self._form(req, resp, given, error.message, 401)
            return
        old = security.read_cookie(req, SESSION)
        if old:
            self._site.sessions.end(old)
        begin(self._site, req, resp, token, projects)
        wanted = security.local_path(given["next"], security.root(req))
        self._site.go(req, resp, wanted.removeprefix(security.root(req)))

    def _log_in(
        self, req: falcon.Request, form: Mapping[str, str]
    ) -> tuple[Token, tuple[tuple[str, str], ...]]:
        """Return a token of one of the user's projects, and all of them."""
        user = form.get("user", "").strip()
        if not user or max(map(len, form.values())) > _LONGEST * 8:
            raise LoginFailed
        domain = form.get("domain", "").strip() or self._site.options.user_domain
        address, password = security.address(req), form.get("password", "")
        unscoped = attempts.counted(
            self._site,
            (user, domain, address),
            lambda: self._site.identity.log_in(user, password, domain, address),
        )
        projects = self._site.identity.projects(unscoped.id)
        if not projects:
            raise LoginFailed("You have no project: an administrator gives roles on one.")
        wanted = {name: key for key, name in projects}.get(form.get("project", "").strip())
        chosen = self._site.identity.scoped(unscoped.id, wanted or projects[0][0])
        return chosen, projects

    def _form(
        self,
        req: falcon.Request,
        resp: falcon.Response,
        given: Mapping[str, str],
        message: str = "",
        status: int = 200,
    ) -> None:
        mark = security.read_cookie(req, LOGIN) or secrets.token_urlsafe(24)
        security.set_cookie(req, resp, LOGIN, mark)
        values = {
            "csrf": self._site.sessions.signed(mark),
            "given": {"user": "", "domain": self._site.options.user_domain, **given},
            "message": message,
            "changed": bool(req.get_param("changed")),
        }
        self._site.send(req, resp, View("login.html", values, status))


class Logout:
    """The end of a session."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Forget the session and revoke its token."""
        name, session = self._site.session(req)
        check_forged(req, form_of(req).get(CSRF_FIELD, [""])[0], session.csrf)
        self._site.sessions.end(name)
        _revoke(self._site, session)
        security.set_cookie(req, resp, SESSION, "", -1)
        self._site.go(req, resp, "/login")


class SwitchProject:
    """Another project of the same user."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Begin a session for it in place of this one, whose token is revoked."""
        name, session = self._site.session(req)
        form = form_of(req)
        check_forged(req, form.get(CSRF_FIELD, [""])[0], session.csrf)
        token = self._site.identity.scoped(session.token, form.get("project", [""])[0])
        self._site.sessions.end(name)
        begin(self._site, req, resp, token, session.projects, session.began)
        _revoke(self._site, session)
        self._site.go(req, resp, "/")


class Theme:
    """The theme: light, dark, or the system's."""

    def __init__(self, site: Site) -> None:
        self._site = site

    def on_post(self, req: falcon.Request, resp: falcon.Response) -> None:
        """Keep the choice in a cookie."""
        _, session = self._site.session(req)
        form = form_of(req)
        check_forged(req, form.get(CSRF_FIELD, [""])[0], session.csrf)
        chosen = form.get("theme", ["auto"])[0]
        if chosen in security.THEMES:
            security.set_cookie(req, resp, THEME, chosen, _YEAR_SECONDS)
        root = security.root(req)
        back = security.local_path(form.get("back", [""])[0], root)
        self._site.go(req, resp, back.removeprefix(root))


def begin(
    site: Site,
    req: falcon.Request,
    resp: falcon.Response,
    token: Token,
    projects: tuple[tuple[str, str], ...],
    began: float | None = None,
) -> None:
    """Begin a session with a new ID; `began`: when the user logged in, where that was before."""
    at = now()
    first = at if began is None else began
    session = Session(
        token=token.id,
        access=token.body,
        projects=projects,
        csrf=secrets.token_urlsafe(32),
        began=first,
        seen=at,
        until=min(token.until, first + site.options.session_hours * 3600),
    )
    security.set_cookie(req, resp, SESSION, site.sessions.begin(session))


def _revoke(site: Site, session: Session) -> None:
    """Revoke a session's token; if Keystone is unreachable, the token expires by itself."""
    try:
        site.identity.revoke(session.token)
    except (ApiRefused, ApiUnreachable) as error:
        LOG.warning("A token isn't revoked: %s", error.message)
