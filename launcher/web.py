"""The WSGI applications of this process, made from the configuration that it was given."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from common import garbage, log
from common.errors import ConfigurationError
from launcher import configuration, wiring
from launcher.mount import Mount
from web.proxies import Proxies

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication

TOGETHER: Mapping[str, Sequence[str]] = {
    "public": ("compute", "image", "network"),
    "all": tuple(wiring.APIS),
}
"""{name: APIs that are served on one port, each below its own name}."""

NAMES = frozenset({*wiring.APIS, *TOGETHER})


@functools.cache
def application(name: str) -> WSGIApplication:
    """Return one API, or those of a name in `TOGETHER`; each is made once."""
    garbage.limit_arenas()
    conf = configuration.load(configuration.files_of_environment())
    log.setup(conf, name)
    made = _made(name, wiring.Wiring(conf))
    garbage.settle()
    return made


def preload(name: str) -> None:
    """Import everything that an API needs, for the workers that are forked afterwards to share.

    The API is made, which opens nothing, and dropped: the workers make their own, so that a
    reload reads the configuration again. A configuration that isn't usable is theirs to report.
    """
    try:
        conf = configuration.load(configuration.files_of_environment())
        _made(name, wiring.Wiring(conf))
    except ConfigurationError:
        return
    garbage.settle()


def _made(name: str, process: wiring.Wiring) -> WSGIApplication:
    if name in TOGETHER:
        made = {path: wiring.APIS[path](process) for path in TOGETHER[name]}
        return Proxies(Mount(made), process.conf)
    return wiring.APIS[name](process)
