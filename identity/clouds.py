"""`clouds.yaml` and `openrc`: how clients log in to the embedded cloud."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from common.clients import openrc as shell
from identity.layout import REGION, SYSTEM_GRANTS
from identity.private_file import private_directory, write_private

CLOUDS: Mapping[str, tuple[str, str]] = {
    "micronova": ("admin", "demo"),
    "micronova-admin": ("admin", "admin"),
    "micronova-demo": ("demo", "demo"),
    "micronova-reader": ("demo-reader", "demo"),
}
"""{cloud name: (user, project)}; `openrc` is the first."""

_DOMAIN = "Default"
#: how long Keystone may take to answer
_SECONDS = 30


def clouds(
    auth_url: str, passwords: Mapping[str, str], regions: Sequence[str] = (REGION,)
) -> dict[str, Any]:
    """Return the content of clouds.yaml as data; the first region is used where none is named."""
    chosen = {"regions": list(regions)} if len(regions) > 1 else {"region_name": regions[0]}
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
                **chosen,
                "interface": "public",
                "identity_api_version": 3,
            }
            for name, (user, project) in CLOUDS.items()
        }
    }


def project_id(auth_url: str, passwords: Mapping[str, str]) -> str:
    """Return the ID of the project of the cloud `micronova`, from its Keystone, which must run."""
    return str(_token(auth_url, passwords)["project"]["id"])


def regions(auth_url: str, passwords: Mapping[str, str], own: str) -> list[str]:
    """Return the regions of the Keystone's catalog, which must run: this cloud's own one first."""
    services = _token(auth_url, passwords)["catalog"]
    found = {endpoint["region"] for service in services for endpoint in service["endpoints"]}
    return [own, *sorted(found - {own})]


def _token(auth_url: str, passwords: Mapping[str, str]) -> dict[str, Any]:
    user, project = CLOUDS["micronova"]
    domain = {"name": _DOMAIN}
    known = {"name": user, "password": passwords[user], "domain": domain}
    asked = {
        "identity": {"methods": ["password"], "password": {"user": known}},
        "scope": {"project": {"name": project, "domain": domain}},
    }
    request = urllib.request.Request(  # noqa: S310 - the URL is our own Keystone's
        f"{auth_url}/auth/tokens",
        json.dumps({"auth": asked}).encode(),
        {"Content-Type": "application/json"},
    )
    # Passwords go to no proxy that the environment names.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request, timeout=_SECONDS) as answer:
        token: dict[str, Any] = json.load(answer)["token"]
        return token


def openrc(
    auth_url: str, passwords: Mapping[str, str], project_id: str, region: str = REGION
) -> str:
    """Return a shell file that sets the environment of the cloud `micronova`.

    As Horizon's, it names the project by ID too, as some clients ask for that variable.
    """
    user, project = CLOUDS["micronova"]
    variables = {
        "OS_AUTH_TYPE": "password",
        "OS_AUTH_URL": auth_url,
        "OS_USERNAME": user,
        "OS_PASSWORD": passwords[user],
        "OS_PROJECT_ID": project_id,
        "OS_PROJECT_NAME": project,
        "OS_USER_DOMAIN_NAME": _DOMAIN,
        "OS_PROJECT_DOMAIN_NAME": _DOMAIN,
        "OS_REGION_NAME": region,
        "OS_INTERFACE": "public",
        "OS_IDENTITY_API_VERSION": "3",
    }
    return shell.openrc(variables)


def service_credentials(
    auth_url: str, passwords: Mapping[str, str], region: str = REGION, user: str = "micronova"
) -> dict[str, str]:
    """Return keystoneauth1's login options of a user of services: {option: value}."""
    project = {"project_name": "service", "project_domain_name": _DOMAIN}
    return {
        "auth_type": "password",
        "auth_url": auth_url,
        "username": user,
        "password": passwords[user],
        "user_domain_name": _DOMAIN,
        **({"system_scope": "all"} if user in SYSTEM_GRANTS else project),
        "region_name": region,
    }


def write_client_files(
    state_dir: Path,
    auth_url: str,
    passwords: Mapping[str, str],
    project_id: str,
    regions: Sequence[str] = (REGION,),
) -> None:
    """Write `clouds.yaml` and `openrc` into `state_dir`, mode 0600, replacing old ones."""
    private_directory(state_dir)
    text = yaml.safe_dump(clouds(auth_url, passwords, regions), sort_keys=False)
    write_private(state_dir / "clouds.yaml", text)
    write_private(state_dir / "openrc", openrc(auth_url, passwords, project_id, regions[0]))
