"""Which pages may open consoles: those of the proxy's own host, as in Nova's proxy."""

from __future__ import annotations

from collections.abc import Iterable
from urllib.parse import urlsplit

#: a websocket is opened by a page of the protocol beside it
_PAGE_OF = {"ws": "http", "wss": "https"}


def refusal(
    origin: str | None,
    host: str,
    forwarded_protocol: str | None,
    allowed_hosts: Iterable[str],
    public_urls: Iterable[str],
) -> str | None:
    """Return why a request from this origin is refused, or None.

    Without an origin it comes from no browser. Behind a proxy that does TLS, the browser's
    protocol is `forwarded_protocol`.
    """
    if origin is None:
        return None
    page = urlsplit(origin)
    protocol = forwarded_protocol or page.scheme
    if not page.hostname or not protocol:
        return "Origin header not valid."
    if page.hostname not in {urlsplit(f"//{host}").hostname, *allowed_hosts}:
        return "Origin header does not match this host."
    schemes = (urlsplit(url).scheme for url in public_urls)
    if protocol not in {_PAGE_OF.get(scheme, scheme) for scheme in schemes}:
        return "Origin header protocol does not match this host."
    return None
