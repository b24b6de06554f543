"""Whether a project exists: Keystone is asked, with the token of who asks us."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import requests
from oslo_config import cfg

from common.auth import GROUP
from common.context import RequestContext
from common.log import logger

LOG = logger(__name__)

_TIMEOUT_SECONDS = 10


class Projects:
    """Keystone's projects, as `[keystone_authtoken] www_authenticate_uri` leads to it."""

    def __init__(self, conf: cfg.ConfigOpts) -> None:
        self._conf = conf

    def exists(self, ctxt: RequestContext, project_id: str) -> bool | None:
        """Whether there is such a project; None where Keystone can't or won't say."""
        url, verify = self._keystone()
        if url is None or ctxt.auth_token is None:
            return None
        try:
            answer = requests.get(
                f"{url}/v3/projects/{quote(project_id, safe='')}",
                headers={"X-Auth-Token": ctxt.auth_token},
                timeout=_TIMEOUT_SECONDS,
                verify=verify,
            )
        except requests.RequestException as error:
            LOG.warning("Keystone was not asked for a project: %s", type(error).__name__)
            return None
        if answer.status_code == requests.codes.not_found:
            return False
        return True if answer.ok else None

    def _keystone(self) -> tuple[str | None, Any]:
        """(URL without version, requests' verify)."""
        if GROUP not in self._conf:
            return None, True
        group = self._conf[GROUP]
        url = group.www_authenticate_uri
        if not url:
            return None, True
        verify = False if group.insecure else group.cafile or True
        return str(url).rstrip("/").removesuffix("/v3"), verify
