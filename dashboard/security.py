"""Browser security: response headers, cookies, the check of a request's origin."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote, urlsplit

import falcon

from web.proxies import client_address

_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
)
_NO_STORE = "no-store"
THEMES = ("auto", "light", "dark")


def secure(req: falcon.Request) -> bool:
    """Return whether the browser came by TLS; web.proxies has checked the header."""
    given: str = req.env.get("HTTP_X_FORWARDED_PROTO") or req.env["wsgi.url_scheme"]
    return given == "https"


def address(req: falcon.Request) -> str:
    """Return the browser's address, by the proxy where web.proxies trusts that."""
    return client_address(req.env)


def root(req: falcon.Request) -> str:
    """Return the path that the dashboard is below, without a slash at the end."""
    prefix = req.env.get("HTTP_X_FORWARDED_PREFIX", "").rstrip("/")
    return f"{prefix}{req.env.get('SCRIPT_NAME', '')}"


def headers(resp: falcon.Response, frames: Sequence[str] = ()) -> None:
    """Set the headers of every page; `frames`: origins whose pages it may show inside."""
    policy = f"{_POLICY}; frame-src {' '.join(frames)}" if frames else _POLICY
    resp.set_header("Content-Security-Policy", policy)
    resp.set_header("X-Content-Type-Options", "nosniff")
    resp.set_header("Referrer-Policy", "same-origin")
    resp.set_header("Cross-Origin-Opener-Policy", "same-origin")
    resp.set_header("Cache-Control", _NO_STORE)


def cookie_name(req: falcon.Request, kind: str) -> str:
    """Return a cookie's name; under TLS browsers take it from no other host or path."""
    return f"__Host-micronova-{kind}" if secure(req) else f"micronova-{kind}"


def read_cookie(req: falcon.Request, kind: str) -> str:
    """Return a cookie's value; empty: there is none."""
    return str(req.cookies.get(cookie_name(req, kind), ""))


def set_cookie(
    req: falcon.Request, resp: falcon.Response, kind: str, value: str, seconds: int | None = None
) -> None:
    """Set a cookie that scripts can't read; without `seconds` it ends with the browser."""
    is_secure = secure(req)
    resp.set_cookie(
        cookie_name(req, kind),
        value,
        max_age=seconds,
        path="/" if is_secure else f"{root(req)}/",
        secure=is_secure,
        http_only=True,
        same_site="Lax",
    )


def is_foreign(req: falcon.Request) -> bool:
    """Return whether another site's page sent the request."""
    site = req.get_header("Sec-Fetch-Site")
    if site and site not in ("same-origin", "none"):
        return True
    origin = req.get_header("Origin")
    if origin is None:
        return False
    host = req.env.get("HTTP_X_FORWARDED_HOST") or req.get_header("Host") or ""
    # a proxy that does TLS may not say so: the host decides
    return urlsplit(origin).netloc != host


def local_path(text: str, below: str) -> str:
    """Return a path of the dashboard to go to, its start page for anything else."""
    start = f"{below}/"
    fits = text.startswith(start) and not text.startswith("//")
    # control characters and backslashes are read as other things by browsers
    plain = all(32 < ord(one) < 127 and one != "\\" for one in text)
    parts = urlsplit(text) if fits and plain else None
    if parts is None or parts.scheme or parts.netloc or "//" in parts.path:
        return start
    # browsers go up at them, also where they are encoded: out of the dashboard
    return start if ".." in unquote(parts.path).split("/") else text
