"""Errors in Glance's form: HTML or JSON, as the client's Accept header has it."""

from __future__ import annotations

import html
import http
from collections.abc import Mapping
from typing import NoReturn

import falcon
import orjson

from common.context import current_request_id
from common.errors import (
    Forbidden,
    Invalid,
    MicronovaError,
    NotFound,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from common.log import logger
from db.reads.keyset import MarkerNotFound

LOG = logger(__name__)

#: the most specific class that fits counts
STATUSES: Mapping[type[MicronovaError], int] = {
    MarkerNotFound: 400,
    Invalid: 400,
    Unauthorized: 401,
    Forbidden: 403,
    NotFound: 404,
    TooLarge: 413,
    Unavailable: 503,
}

_HTML = (
    "<html>\n <head>\n  <title>{status}</title>\n </head>\n <body>\n  <h1>{status}</h1>\n"
    "  {message}<br /><br />\n\n\n\n </body>\n</html>"
)


def install(app: falcon.App) -> None:  # type: ignore[type-arg]
    """Let `app` answer every error in this form."""
    app.add_error_handler(Exception, _unexpected)
    app.add_error_handler(falcon.HTTPError, _http)
    app.add_error_handler(MicronovaError, _known)


def _known(
    req: falcon.Request, resp: falcon.Response, error: MicronovaError, params: object
) -> None:
    for kind in type(error).__mro__:
        if kind in STATUSES:
            _answer(req, resp, STATUSES[kind], error.message)
            return
    _unexpected(req, resp, error, params)


def _http(
    req: falcon.Request, resp: falcon.Response, error: falcon.HTTPError, params: object
) -> None:
    resp.set_headers(error.headers or {})
    message = error.description or _SENTENCES.get(error.status_code, "")
    _answer(req, resp, error.status_code, message)


def _unexpected(
    req: falcon.Request, resp: falcon.Response, error: Exception, params: object
) -> None:
    LOG.error("%s %s failed", req.method, req.path, exc_info=error)
    _answer(req, resp, 500, f"The request failed; its ID is {current_request_id()}.")


_SENTENCES: Mapping[int, str] = {
    404: "The resource could not be found.",
    405: "The method is not allowed for this resource.",
}


def _answer(req: falcon.Request, resp: falcon.Response, code: int, message: str) -> None:
    title = http.HTTPStatus(code).phrase
    status = f"{code} {title}"
    resp.status = status
    resp.vary = ("Accept",)
    # HTML where it is liked as much as JSON, as WebOb has it. JSON for who accepts neither (Glance
    # sends text there): openstacksdk leaves Accept empty on some calls and reads JSON only.
    accept = req.get_header("Accept")
    if accept and req.client_prefers(("text/html", "application/json")) == "text/html":
        resp.content_type = "text/html; charset=UTF-8"
        resp.text = _HTML.format(status=status, message=html.escape(message, quote=False))
    else:
        resp.content_type = "application/json; charset=UTF-8"
        resp.data = orjson.dumps({"message": message, "code": status, "title": title})


def read_only(image_id: str | None = None) -> NoReturn:
    """Refuse a change, as Glance does where its policy forbids one: raises Forbidden."""
    subject = f"Image {image_id} is" if image_id else "Images are"
    raise Forbidden(f"{subject} read-only here: what there is, the import storages hold.")
