"""HTTP to the cloud's own services, Keystone and Proxmox VE: always direct.

Libraries look into the environment for proxies, and for passwords in ``.netrc``. Those are meant
for the programs of the person whose shell it is: what the services say to each other holds tokens
and passwords, and a proxy reaches no loopback address but its own. So neither ``http_proxy``,
``https_proxy``, ``all_proxy`` and ``no_proxy`` nor ``.netrc`` mean anything here.
"""

from __future__ import annotations

import ipaddress
import os
from urllib.parse import urlsplit

import requests
from keystoneauth1 import session as ksa_session

#: the requests library's own
CONNECTIONS = 10
_VARIABLES = ("http_proxy", "https_proxy", "all_proxy")


def session(connections: int = CONNECTIONS) -> requests.Session:
    """Return a session with a pool of this many connections to one host; threads may share it."""
    made = requests.Session()
    for scheme in list(made.adapters):
        made.mount(scheme, ksa_session.TCPKeepAliveAdapter(pool_maxsize=connections))
    return without_environment(made)


def without_environment(given: requests.Session) -> requests.Session:
    """Return a session that another library made; from now on it connects directly."""
    given.trust_env = False
    return given


def is_of_this_machine(url: str) -> bool:
    """Return whether a URL's host is a loopback address, or localhost."""
    host = urlsplit(url).hostname or ""
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def proxied(url: str) -> str | None:
    """Return the variable by which other programs would send requests for a URL to a proxy."""
    if requests.utils.should_bypass_proxies(url, no_proxy=None):
        return None
    scheme = urlsplit(url).scheme
    named = [name for name in _VARIABLES if name.startswith((scheme + "_", "all"))]
    both = [one for name in named for one in (name, name.upper())]
    return next((name for name in both if os.environ.get(name)), None)
