"""The WSGI applications of this process, made from the configuration that it was given."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

from common import garbage, log
from launcher import configuration, wiring
from launcher.mount import Mount
from web.proxies import Proxies

if TYPE_CHECKING:
    from wsgiref.types import WSGIApplication


@functools.cache
def application(name: str) -> WSGIApplication:
    """Return one API, or with ``all`` every one below its name; each is made once."""
    conf = configuration.load(configuration.files_of_environment())
    log.setup(conf, name)
    made = _made(name, wiring.Wiring(conf))
    garbage.settle()
    return made


def _made(name: str, process: wiring.Wiring) -> WSGIApplication:
    if name == "all":
        made = {path: make(process) for path, make in wiring.APIS.items()}
        return Proxies(Mount(made), process.conf)
    return wiring.APIS[name](process)
