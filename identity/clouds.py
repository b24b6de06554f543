"""`clouds.yaml` and `openrc`: how clients log in to the embedded cloud."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import yaml

from common import direct
from identity.layout import REGION
from identity.private_file import private_directory, write_private

CLOUDS: Mapping[str, tuple[str, str]] = {
    "micronova": ("admin", "demo"),
    "micronova-admin": ("admin", "admin"),
    "micronova-demo": ("demo", "demo"),
    "micronova-reader": ("demo-reader", "demo"),
}
"""{cloud name: (user, project)}; `openrc` is the first."""

_DOMAIN = "Default"


def clouds(auth_url: str, passwords: Mapping[str, str]) -> dict[str, Any]:
    """Return the content of clouds.yaml as data."""
    return {
        "clouds": {
            name: {
                "auth": {
                    "auth_url": auth_url,
                    "username": user,
                    "password": passwords[user],
                    "project_name": project,
                    "user_domain_name": _DOMAIN,
                    "project_domain_name": _DOMAIN,
                },
                "region_name": REGION,
                "interface": "public",
                "identity_api_version": 3,
            }
            for name, (user, project) in CLOUDS.items()
        }
    }


def openrc(auth_url: str, passwords: Mapping[str, str]) -> str:
    """Return a shell file that sets the environment of the cloud `micronova`."""
    user, project = CLOUDS["micronova"]
    variables = {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": auth_url,
        "OS_USERNAME": user,
        "OS_PASSWORD": passwords[user],
        "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_NAME": _DOMAIN,
        "OS_PROJECT_DOMAIN_NAME": _DOMAIN,
        "OS_REGION_NAME": REGION,
        "OS_INTERFACE": "public",
        "OS_IDENTITY_API_VERSION": "3",
    }
    lines = [f"export {name}={shlex.quote(value)}\n" for name, value in variables.items()]
    if direct.is_of_this_machine(auth_url):
        # A proxy would be sent the password, and connects to its own loopback address.
        host = urlsplit(auth_url).hostname
        lines.append(f'export no_proxy="${{no_proxy:-${{NO_PROXY:-}}}},{host}"\n')
    return "".join(["unset OS_CLOUD\n", *lines])


def service_credentials(auth_url: str, passwords: Mapping[str, str]) -> dict[str, str]:
    """Return keystoneauth1's login options of the services' own user: {option: value}."""
    return {
        "auth_type": "password",
        "auth_url": auth_url,
        "username": "micronova",
        "password": passwords["micronova"],
        "project_name": "service",
        "user_domain_name": _DOMAIN,
        "project_domain_name": _DOMAIN,
        "region_name": REGION,
    }


def write_client_files(state_dir: Path, auth_url: str, passwords: Mapping[str, str]) -> None:
    """Write `clouds.yaml` and `openrc` into `state_dir`, mode 0600, replacing old ones."""
    private_directory(state_dir)
    text = yaml.safe_dump(clouds(auth_url, passwords), sort_keys=False)
    write_private(state_dir / "clouds.yaml", text)
    write_private(state_dir / "openrc", openrc(auth_url, passwords))
