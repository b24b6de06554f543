"""`clouds.yaml` and `openrc` for a user's clients. Pure."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from common.clients import openrc as shell

#: the cloud's name in the file
_NAME = "micronova"
_APPLICATION = "v3applicationcredential"


@dataclass(frozen=True)
class File:
    """A file that a page offers."""

    name: str
    text: str

    @property
    def address(self) -> str:
        """Return the link that downloads it, without another request."""
        encoded = base64.b64encode(self.text.encode()).decode()
        return f"data:application/octet-stream;base64,{encoded}"


def of_password(auth_url: str, regions: Sequence[str], user: Mapping[str, str]) -> File:
    """Return `clouds.yaml` of a login by password, without the password.

    `user`: username, project_name and the names of both domains.
    """
    return _clouds(regions, {"auth": {"auth_url": auth_url, **user}})


def of_credential(
    auth_url: str, regions: Sequence[str], credential: Mapping[str, str]
) -> tuple[File, File]:
    """Return `clouds.yaml` and `openrc` of an application credential, with its secret."""
    auth = {
        "auth_url": auth_url,
        "application_credential_id": credential["id"],
        "application_credential_secret": credential["secret"],
    }
    variables = {
        "OS_AUTH_TYPE": _APPLICATION,
        **{f"OS_{name.upper()}": value for name, value in auth.items()},
        **({"OS_REGION_NAME": regions[0]} if regions else {}),
        "OS_INTERFACE": "public",
        "OS_IDENTITY_API_VERSION": "3",
    }
    clouds = _clouds(regions, {"auth_type": _APPLICATION, "auth": auth})
    return clouds, File("openrc", shell.openrc(variables))


def _clouds(regions: Sequence[str], login: Mapping[str, object]) -> File:
    # a worker that nobody asks for such a file does without its memory
    import yaml

    cloud = {**login, "interface": "public", "identity_api_version": 3}
    if regions:
        several = len(regions) > 1
        cloud |= {"regions": list(regions)} if several else {"region_name": regions[0]}
    content = {"clouds": {_NAME: cloud}}
    return File("clouds.yaml", yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
