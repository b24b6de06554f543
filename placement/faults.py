"""Errors in the Placement API's form: JSON, HTML or plain text, as the client accepts."""

from __future__ import annotations

import html
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

import falcon
import orjson

from common.errors import MicronovaError
from placement.errors import api_code
from placement.microversions import VERSIONS
from web.errors import Fault, Faults, MethodNotAllowed

#: the sentence before an error's own, by status; clients print both
_EXPLANATIONS: Mapping[int, str] = {
    400: "The server could not comply with the request since it is either malformed or "
    "otherwise incorrect.\n\n {detail}  ",
    401: "This server could not verify that you are authorized to access the document you "
    "requested.\n\n {detail}  ",
    403: "Access was denied to this resource.\n\n {detail}  ",
    404: "The resource could not be found.\n\n {detail}  ",
    405: "The method {method} is not allowed for this resource. \n\n {detail}",
    406: "The resource could not be generated that was acceptable to your browser (content of "
    "type application/json. \n\n {detail}",
    409: "There was a conflict when trying to complete your request.\n\n {detail}  ",
    413: "The body of your request was too large for this server.\n\n {detail}  ",
    415: "The request media type {media} is not supported by this server. \n\n {detail}",
    500: "The server has either erred or is incapable of performing the requested "
    "operation.\n\n {detail}  ",
    503: "The server is currently unavailable. Please try again at a later time.\n\n {detail}  ",
}
_CODES_SINCE = 23
_JSON, _HTML = "application/json", "text/html"
#: types of error bodies, preferred first; a client that accepts neither gets plain text
_TYPES = (_HTML, _JSON)


def _form(req: falcon.Request, resp: falcon.Response, fault: Fault) -> None:
    status, error = fault.status, fault.error
    if isinstance(error, falcon.HTTPMethodNotAllowed):
        resp.set_header("allow", ", ".join(_allowed(error)))
    version = getattr(req.context, "version", None)
    details = error.details if isinstance(error, MicronovaError) else {}
    body: dict[str, Any] = {
        "status": status,
        "title": _title(status),
        "detail": _EXPLANATIONS.get(status, "{detail}").format(
            detail=fault.message.strip(), method=req.method, media=details.get("given", "")
        ),
    }
    if version is not None and version >= _CODES_SINCE:
        body["code"] = api_code(error)
    body["request_id"] = req.env.get("openstack.request_id", "")
    if status == 406 and version is None:
        body["max_version"] = VERSIONS.text(VERSIONS.newest)
        body["min_version"] = VERSIONS.text(VERSIONS.oldest)
    resp.status = falcon.code_to_http_status(status)
    accept = req.get_header("accept") or "*/*"
    kind = _JSON if accept == "*/*" else req.client_prefers(_TYPES)
    if kind == _JSON:
        resp.content_type = _JSON
        resp.data = orjson.dumps({"errors": [body]})
    else:
        resp.content_type = f"{kind or 'text/plain'}; charset=UTF-8"
        written = _page if kind == _HTML else _text
        resp.data = written(f"{status} {body['title']}", body["detail"]).encode()


def _allowed(error: falcon.HTTPMethodNotAllowed) -> list[str]:
    methods = dict(error.headers or {}).get("Allow", "").split(", ")
    return [method for method in methods if method != "OPTIONS"]


def _page(title: str, detail: str) -> str:
    text = "<br />".join(html.escape(line.strip()) for line in detail.strip().split("\n"))
    return (
        f"<html>\n <head>\n  <title>{title}</title>\n </head>\n"
        f" <body>\n  <h1>{title}</h1>\n  {text}\n </body>\n</html>"
    )


def _text(title: str, detail: str) -> str:
    return f"{title}\n\n{detail}"


def _title(status: int) -> str:
    return "Request Entity Too Large" if status == 413 else HTTPStatus(status).phrase


FAULTS = Faults(
    _form,
    "Unexpected error; the log has more.",
    sentences={404: "", 405: MethodNotAllowed.sentence},
)
