"""What stands before every page: session, origin, CSRF, permission; and what shows errors."""

from __future__ import annotations

import functools
import hmac
import time
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import parse_qs, urlencode

import falcon
import jinja2
from keystoneauth1.access.access import AccessInfoV3
from keystoneauth1.session import Session as HttpSession
from oslo_config import cfg

from common.errors import Forbidden, Invalid
from dashboard import security
from dashboard.answer import Redirect, Same, View
from dashboard.cloud import DATA_TYPE, Cloud, Data
from dashboard.errors import ApiRefused, ForgedRequest, FormTooLarge, SessionEnded, status_of
from dashboard.gathered import Days
from dashboard.identity import Identity
from dashboard.navigation import navigation
from dashboard.page import Page, Section
from dashboard.sessions import Session, Sessions
from dashboard.unchanged import Unchanged
from dashboard.visit import Visit
from web import bodies
from web.errors import Fault, UnsupportedMedia

SESSION, THEME, LOGIN = "session", "theme", "login"
CSRF_FIELD, CSRF_HEADER = "csrf", "X-CSRF-Token"
#: user data has 64 KiB, and grows when it is encoded
_FORM_BYTES = 1 << 18
_FORM_FIELDS = 500
_PIECE_BYTES = 1 << 18
_CHANGES = ("POST", "PUT")
_POOL = 16


class Site:
    """What all pages share."""

    def __init__(
        self,
        options: cfg.ConfigOpts.GroupAttr,
        http: HttpSession,
        sessions: Sessions,
        templates: jinja2.Environment,
        sections: tuple[Section, ...],
    ) -> None:
        self.options, self.sessions, self.sections = options, sessions, sections
        self.identity = Identity(http, options.auth_url, options.request_seconds)
        self._http, self._templates = http, templates
        self._unchanged, self._days = Unchanged(), Days()

    @functools.cached_property
    def _pool(self) -> ThreadPoolExecutor:
        """Threads for calls of one page at the same time; begun in the worker."""
        return ThreadPoolExecutor(_POOL, thread_name_prefix="dashboard")

    # --- a visit

    def session(self, req: falcon.Request) -> tuple[str, Session]:
        """Return the session of a request and its ID. Raises SessionEnded."""
        name = security.read_cookie(req, SESSION)
        session = self.sessions.read(name) if name else None
        if session is None:
            raise SessionEnded
        return name, session

    def visit(
        self, req: falcon.Request, params: Mapping[str, Any], name: str, session: Session
    ) -> Visit:
        """Return what pages see of a request. Raises ForgedRequest and FormTooLarge."""
        form = form_of(req) if req.method == "POST" else {}
        if req.method in _CHANGES:
            given = req.get_header(CSRF_HEADER) or (form.get(CSRF_FIELD) or [""])[0]
            check_forged(req, given, session.csrf)
        access = AccessInfoV3(dict(session.access), session.token)
        cloud = Cloud(
            self._http,
            access,
            self._pool,
            interface=self.options.interface,
            region=self.options.region_name,
            seconds=self.options.request_seconds,
            address=security.address(req),
        )
        try:
            asked = parse_qs(req.query_string, max_num_fields=_FORM_FIELDS)
        except ValueError as error:
            raise Invalid("The query has too many fields.") from error
        return Visit(
            session=session,
            access=access,
            cloud=cloud,
            params={name: str(value) for name, value in params.items()},
            query={name: values[-1] for name, values in asked.items()},
            form=form,
            page_size=self.options.page_size,
            data=self._data(req, name) if req.method == "PUT" else None,
            is_fragment=bool(req.get_header("HX-Request")),
            unchanged=self._unchanged,
            days=self._days,
        )

    def _data(self, req: falcon.Request, name: str) -> Data:
        """Return what a request uploads. Raises UnsupportedMedia, or Invalid without a length."""
        if (req.content_type or "").partition(";")[0].strip().lower() != DATA_TYPE:
            raise UnsupportedMedia(f"Uploads are {DATA_TYPE}.")
        if not req.content_length:
            raise Invalid("The upload has no data, or doesn't say how long it is.")
        pieces = bodies.pieces(req, _PIECE_BYTES)
        return Data(req.content_length, self.sessions.using(name, pieces))

    # --- answers

    def send(
        self, req: falcon.Request, resp: falcon.Response, found: View, visit: Visit | None = None
    ) -> None:
        """Answer with a template."""
        theme = security.read_cookie(req, THEME)
        values = {
            "root": security.root(req),
            "path": req.path,
            "theme": theme if theme in security.THEMES else "auto",
            "visit": visit,
            "navigation": navigation(self._sections_of(visit), req.path),
            "flashes": visit.session.flashes if visit else (),
            **found.values,
        }
        security.headers(resp, found.frames)
        resp.status = found.status
        resp.content_type = "text/html; charset=utf-8"
        resp.text = self._templates.get_template(found.template).render(values)
        if visit is not None:
            _time(resp, visit)

    def leave(self, resp: falcon.Response, visit: Visit) -> None:
        """Answer that the shown page is up to date."""
        security.headers(resp)
        resp.status = 204
        _time(resp, visit)

    def _sections_of(self, visit: Visit | None) -> list[Section]:
        return [one for one in self.sections if visit and visit.may(one.may)]

    def go(self, req: falcon.Request, resp: falcon.Response, path: str) -> None:
        """Redirect to another page of ours; the script of an upload opens it after the upload."""
        security.headers(resp)
        resp.status = 201 if req.method == "PUT" else 303
        resp.location = security.root(req) + path

    def show_fault(self, req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
        """Answer an error with an error page, or with the login page if no user is logged in."""
        if isinstance(fault.error, SessionEnded):
            self._to_login(req, resp)
            return
        visit = getattr(req.context, "visit", None)
        request_id = getattr(fault.error, "request_id", "")
        values = {"status": fault.status, "message": fault.message, "request_id": request_id}
        self.send(req, resp, View("error.html", values, fault.status), visit)

    def on_refused(
        self, req: falcon.Request, resp: falcon.Response, error: ApiRefused, _params: object
    ) -> None:
        """Answer what an API refused, with its status, its sentence and its request ID."""
        self.show_fault(req, resp, Fault(status_of(error), error.message, error))

    def _to_login(self, req: falcon.Request, resp: falcon.Response) -> None:
        wanted = security.root(req) + req.path if req.method == "GET" else ""
        if wanted and req.query_string:
            wanted += f"?{req.query_string}"
        path = "/login" + (f"?{urlencode({'next': wanted})}" if wanted else "")
        if req.get_header("HX-Request"):
            security.headers(resp)
            resp.status = 401
            resp.set_header("HX-Redirect", f"{security.root(req)}/login")
            return
        self.go(req, resp, path)


class Guarded:
    """The pages of one path, as a Falcon resource."""

    def __init__(self, site: Site, pages: Mapping[str, Page]) -> None:
        self._site, self._pages = site, pages
        if "GET" in pages:
            self.on_get = functools.partial(self._serve, "GET")
        if "POST" in pages:
            self.on_post = functools.partial(self._serve, "POST")
        if "PUT" in pages:
            self.on_put = functools.partial(self._serve, "PUT")

    def _serve(
        self, method: str, req: falcon.Request, resp: falcon.Response, **params: Any
    ) -> None:
        page, site = self._pages[method], self._site
        name, session = site.session(req)
        visit = site.visit(req, params, name, session)
        req.context.visit = visit
        if not visit.may(page.may):
            raise Forbidden("Your role doesn't allow this.")
        answer = page.show(visit)
        if isinstance(answer, Redirect):
            if visit.session is not session:
                site.sessions.show(name, session.flashes, visit.session.flashes)
            site.go(req, resp, answer.path)
            return
        if isinstance(answer, Same):
            site.leave(resp, visit)
            return
        site.send(req, resp, answer, visit)
        if session.flashes and not visit.is_fragment:
            site.sessions.show(name, session.flashes, ())


def _time(resp: falcon.Response, visit: Visit) -> None:
    """Say how many calls of APIs an answer took, and how long they did."""
    took = f"{visit.cloud.waited * 1000:.1f}"
    resp.set_header("Server-Timing", f'api;desc="{visit.cloud.calls} calls";dur={took}')


def form_of(req: falcon.Request) -> dict[str, list[str]]:
    """Return the fields of a form. Raises FormTooLarge, or Invalid."""
    if (req.content_length or 0) > _FORM_BYTES:
        raise FormTooLarge
    content = req.bounded_stream.read(_FORM_BYTES + 1)
    if len(content) > _FORM_BYTES:
        raise FormTooLarge
    try:
        return parse_qs(content.decode(), keep_blank_values=True, max_num_fields=_FORM_FIELDS)
    except ValueError as error:
        raise Invalid("The form can't be read.") from error


def check_forged(req: falcon.Request, given: str, expected: str) -> None:
    """Raise ForgedRequest unless a page of ours, in this session, sent a change."""
    if security.is_foreign(req) or not hmac.compare_digest(given.encode(), expected.encode()):
        raise ForgedRequest


def now() -> float:
    """Return the time in seconds since the epoch."""
    return time.time()
