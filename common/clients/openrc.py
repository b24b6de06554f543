"""A shell file that sets the environment by which clients log in."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from urllib.parse import urlsplit

from common.clients import direct

#: variables that would mean another cloud, project or user
_OTHERS = (
    *("OS_CLOUD", "OS_TENANT_ID", "OS_TENANT_NAME", "OS_SYSTEM_SCOPE", "OS_TOKEN"),
    *("OS_APPLICATION_CREDENTIAL_ID", "OS_APPLICATION_CREDENTIAL_SECRET"),
    *("OS_USERNAME", "OS_USER_ID", "OS_PASSWORD", "OS_USER_DOMAIN_NAME", "OS_USER_DOMAIN_ID"),
    *("OS_PROJECT_ID", "OS_PROJECT_NAME", "OS_PROJECT_DOMAIN_NAME", "OS_PROJECT_DOMAIN_ID"),
)


def openrc(variables: Mapping[str, str]) -> str:
    """Return a shell file that exports these variables, and unsets others that mean a login."""
    others = [one for one in _OTHERS if one not in variables]
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    auth_url = variables["OS_AUTH_URL"]
    if direct.is_of_this_machine(auth_url):
        # A proxy would be sent the password, and connects to its own loopback address.
        host = urlsplit(auth_url).hostname
        lines.append(f'export no_proxy="${{no_proxy:-${{NO_PROXY:-}}}},{host}"\n')
    return "".join([f"unset {' '.join(others)}\n", *lines])
