"""Validation of the headers that say from where and under which URL a client reached the API.

Links in answers use the `Host` header, or `X-Forwarded-Proto`, `-Host` and `-Prefix`, and the
dashboard counts failed logins by `X-Forwarded-For`. Any client can send these, and a cache may
serve the answer to others: so the forwarded ones count only from the addresses that
`[web] trusted_proxies` names, and all of them only when well formed.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from oslo_config import cfg

from common.errors import ConfigurationError

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

GROUP = "web"
UNIX = "unix"
"""The name of clients that connect through a Unix socket."""

OPTIONS = (
    cfg.ListOpt(
        "trusted_proxies",
        default=[],
        help="Addresses and networks (such as 10.0.0.5, 10.0.1.0/24, 127.0.0.1) of the proxies "
        "in front of the APIs; unix for those that connect through a Unix socket. Only from "
        "them X-Forwarded-Proto, -Host and -Prefix are used for the links in answers, and "
        "X-Forwarded-For for the address whose failed logins the dashboard counts, the "
        "last value if there are several; the proxy has to set all four or remove what "
        "clients sent. By default these headers are ignored, as with oslo.middleware's "
        "enable_proxy_headers_parsing. The header Forwarded is never used.",
    ),
    cfg.FloatOpt(
        "drain_seconds",
        default=5.0,
        min=0.0,
        max=25.0,
        help="Seconds for which an API that is asked to end (SIGTERM) still takes requests, while "
        "its /readyz answers 503, /inservice 404, and each answer closes its connection: in that "
        "time the proxy in front finds that it leaves. Longer than two of the proxy's checks.",
    ),
)

_LABEL = "[A-Za-z0-9_-]{1,63}"
_HOST = re.compile(rf"({_LABEL}(\.{_LABEL})*\.?|\[[0-9A-Fa-f:.]+\])(:[0-9]{{1,5}})?", re.ASCII)
_LONGEST_HOST = 260
"""A DNS name (253 characters and a final dot), a colon and a port."""
_SCHEME = re.compile(r"https?", re.ASCII)
_PREFIX = re.compile(r"(/[A-Za-z0-9._~-]+)*/?", re.ASCII)
_NEVER = ("HTTP_FORWARDED",)
_BAD_HOST = b'{"error": "The Host header is not a host."}'

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


def register(conf: cfg.ConfigOpts) -> None:
    """Declare `[web]` on `conf`; idempotent."""
    conf.register_opts(OPTIONS, group=GROUP)


def is_host(text: str) -> bool:
    """Return whether a text is a valid `Host`: a name or an address, and maybe a port."""
    if len(text) > _LONGEST_HOST or not _HOST.fullmatch(text):
        return False
    if not text.startswith("["):
        return True
    try:
        ipaddress.IPv6Address(text[1:].partition("]")[0])
    except ValueError:
        return False
    return True


def client_address(environ: Mapping[str, Any]) -> str:
    """Return from where a request came that passed `Proxies`; empty: by a Unix socket."""
    return str(environ.get("HTTP_X_FORWARDED_FOR") or environ.get("REMOTE_ADDR") or "")


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True


_FORMS: Mapping[str, Callable[[str], object]] = {
    "HTTP_X_FORWARDED_FOR": _is_address,
    "HTTP_X_FORWARDED_PROTO": _SCHEME.fullmatch,
    "HTTP_X_FORWARDED_HOST": is_host,
    "HTTP_X_FORWARDED_PREFIX": _PREFIX.fullmatch,
}


class Proxies:
    """WSGI layer: removes forwarding headers that are malformed or from untrusted clients.

    A request with an invalid `Host` is answered 400. Raises ConfigurationError for an invalid
    address of a proxy.
    """

    def __init__(self, app: WSGIApplication, conf: cfg.ConfigOpts) -> None:
        register(conf)
        named = conf[GROUP].trusted_proxies
        self._app = app
        self._unix = UNIX in named
        self._networks = _networks([name for name in named if name != UNIX])

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        host = environ.get("HTTP_HOST")
        if host and not is_host(host):
            headers = [
                ("Content-Type", "application/json"),
                ("Content-Length", str(len(_BAD_HOST))),
            ]
            start_response("400 Bad Request", headers)
            return [_BAD_HOST]
        given = [name for name in (*_FORMS, *_NEVER) if name in environ]
        if given:
            trusted = self._trusts(environ.get("REMOTE_ADDR", ""))
            for name in given:
                value = environ.pop(name).rpartition(",")[2].strip()
                if trusted and name in _FORMS and _FORMS[name](value):
                    environ[name] = value
        return self._app(environ, start_response)

    def _trusts(self, peer: str) -> bool:
        try:
            address = ipaddress.ip_address(peer)
        except ValueError:
            return self._unix and not peer
        address = getattr(address, "ipv4_mapped", None) or address
        return any(address in network for network in self._networks)


def _networks(names: Sequence[str]) -> list[Network]:
    try:
        return [ipaddress.ip_network(name) for name in names]
    except ValueError as error:
        raise ConfigurationError(f"[{GROUP}] trusted_proxies: {error}.") from error
