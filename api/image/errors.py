"""Errors in Glance's form: HTML or JSON, depending on the client's Accept header."""

from __future__ import annotations

import html
import http
from typing import NoReturn

import falcon
import orjson

from common.errors import Forbidden
from db.reads.keyset import MarkerNotFound
from web.errors import Fault, Faults

_HTML = (
    "<html>\n <head>\n  <title>{status}</title>\n </head>\n <body>\n  <h1>{status}</h1>\n"
    "  {message}<br /><br />\n\n\n\n </body>\n</html>"
)


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    title = http.HTTPStatus(fault.status).phrase
    status = f"{fault.status} {title}"
    resp.status = status
    resp.vary = ("Accept",)
    # HTML where it is preferred as much as JSON, as in WebOb. JSON where neither is accepted
    # (Glance sends text): openstacksdk leaves Accept empty on some calls and reads JSON only.
    accept = req.get_header("Accept")
    if accept and req.client_prefers(("text/html", "application/json")) == "text/html":
        resp.content_type = "text/html; charset=UTF-8"
        message = html.escape(fault.message, quote=False)
        resp.text = _HTML.format(status=status, message=message)
    else:
        resp.content_type = "application/json; charset=UTF-8"
        resp.data = orjson.dumps({"message": fault.message, "code": status, "title": title})


FAULTS = Faults(_form, "The request failed; its ID is {}.", statuses={MarkerNotFound: 400})


def read_only(image_id: str | None = None) -> NoReturn:
    """Refuse a change, as Glance does where its policy forbids one: raises Forbidden."""
    subject = f"Image {image_id} is" if image_id else "Images are"
    raise Forbidden(f"{subject} read-only here: what there is, the import storages hold.")


def no_data(image_id: str) -> NoReturn:
    """Refuse data of an image: raises Forbidden."""
    raise Forbidden(
        f"The data of image {image_id} can't be sent here: put a file on an import storage."
    )
