"""How members of groups are checked: by their guest's agent, by TCP, by HTTP.

A member is asked at its own address only, whatever the URL says of its host.
"""

from __future__ import annotations

import re
import urllib.parse
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

#: what stands for the member in a URL, as in Senlin
NAME = "{nodename}"
#: what a URL's host becomes before it is parsed
_HOST = "member.invalid"
_PATTERN = re.compile(r"[\\^$*+?()\[\]{}|]")
_CONTROL = re.compile(r"[\x00-\x20\x7f-\U0010ffff]")
_URL_MOST, _TEXT_MOST = 1024, 255
POLL_URL = "NODE_STATUS_POLL_URL"


@dataclass(frozen=True)
class Checks:
    """What is checked of a member, and how often. It is not well if one of them fails."""

    agent: bool = False
    """Whether the guest's agent has to answer."""
    tcp_port: int = 0
    """A port that has to take connections; 0: none."""
    url: str = ""
    """What has to answer with a status of 2xx, see ``parsed``; empty: nothing."""
    verify: bool = True
    """Whether the certificate of an https URL has to be valid, for the member's address."""
    refused_is_sick: bool = True
    """Whether a URL that takes no connection counts as unwell; else as well."""
    contains: str = ""
    """Text that the answer has to contain."""
    interval_seconds: int = 60
    retry_seconds: int = 60
    """In place of the interval, while a check fails."""
    threshold: int = 3
    """How many checks in a row fail before a member is unwell."""
    grace_seconds: int = 300
    """For how long failures don't count after a server has begun to run."""

    @property
    def is_any(self) -> bool:
        """Whether anything is checked."""
        return self.agent or bool(self.tcp_port or self.url)

    @property
    def needs_address(self) -> bool:
        """Whether a member is reached over the network."""
        return bool(self.tcp_port or self.url)


@dataclass(frozen=True)
class Location:
    """What a URL says, without its host."""

    secure: bool
    port: int
    target: str
    """Path and query, for the request's first line."""


def parsed(url: str, name: str) -> Location:
    """Return where a member of this name is asked. Raises ValueError with a sentence."""
    if len(url) > _URL_MOST or _CONTROL.search(url):
        raise ValueError(f"A URL has at most {_URL_MOST} characters, all of them ASCII.")
    parts = urllib.parse.urlsplit(url.replace(f"//{NAME}", f"//{_HOST}", 1))
    if parts.scheme not in ("http", "https"):
        raise ValueError("The URL must begin with http:// or https://.")
    if parts.hostname != _HOST or parts.username is not None or parts.password is not None:
        raise ValueError(
            f"The host of the URL must be {NAME}: a member is asked at its own address only."
        )
    secure = parts.scheme == "https"
    target = urllib.parse.urlunsplit(("", "", parts.path or "/", parts.query, ""))
    quoted = urllib.parse.quote(name, safe="")
    return Location(secure, parts.port or (443 if secure else 80), target.replace(NAME, quoted))


def check_text(text: Any) -> None:
    """Refuse what an answer can't have to contain. Raises ValueError with a sentence."""
    if not isinstance(text, str) or len(text) > _TEXT_MOST:
        raise ValueError(f"What an answer contains is a text of at most {_TEXT_MOST} characters.")
    if _PATTERN.search(text):
        raise ValueError(f"What an answer contains is plain text, no pattern: '{text}'.")


def with_policy(checks: Checks, detection: Mapping[str, Any]) -> Checks:
    """Return checks with those of a health policy's checked detection."""
    found = dict(vars(checks))
    if "interval" in detection:
        found["interval_seconds"] = found["retry_seconds"] = int(detection["interval"])
    if "node_update_timeout" in detection:
        found["grace_seconds"] = int(detection["node_update_timeout"])
    for mode in detection.get("detection_modes") or ():
        if mode.get("type") == POLL_URL:
            found |= _of_url(mode.get("options") or {})
    return Checks(**found)


def _of_url(options: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the options of polling a URL say; Senlin's defaults."""
    return {
        "url": str(options["poll_url"]),
        "verify": bool(options.get("poll_url_ssl_verify", True)),
        "refused_is_sick": bool(options.get("poll_url_conn_error_as_unhealthy", True)),
        "contains": str(options.get("poll_url_healthy_response", "")),
        "threshold": max(1, int(options.get("poll_url_retry_limit", 3))),
        "retry_seconds": max(1, int(options.get("poll_url_retry_interval", 3))),
    }
