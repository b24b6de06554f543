"""Errors as one line for the user."""

from __future__ import annotations

import re


class CommandFailed(Exception):
    """A command failed; the message is the line that the user reads."""


#: where keystoneauth's sentence ends and the text of the libraries below it begins
_LIBRARY_NOISE = re.compile(r": (HTTPS?Connection(Pool)?\(|\('Connection aborted).*", re.DOTALL)

NO_CLOUD = (
    "No cloud to talk to: name one of clouds.yaml with --os-cloud or OS_CLOUD, "
    "or give --os-auth-url and the rest, or their OS_* variables"
)


_FORBIDDEN = 403
#: what an API says of a request that its policy refuses, with the name of a rule
_POLICY = re.compile(
    r"(Policy doesn't allow|You are not authorized to perform) [\w:.-]+( to be performed)?\.?"
)
_ADMIN = "micronova"


def sentence(error: BaseException) -> str:
    """Return one line for people about an error of the SDK, of keystoneauth or our own.

    >>> sentence(CommandFailed("No such file: x"))
    'No such file: x'
    """
    missing = getattr(error, "options", None)
    if type(error).__name__ == "MissingRequiredOptions" and missing:
        names = ", ".join(str(getattr(option, "dest", option)) for option in missing)
        return f"The cloud's credentials lack {names}"
    status = getattr(error, "status_code", None) or getattr(error, "http_status", None)
    if isinstance(status, int) and status >= 400:
        text = _one_line(
            getattr(error, "details", None) or getattr(error, "message", None) or str(error)
        )
        if status == _FORBIDDEN:
            text = _POLICY.sub(may_not(), text)
        if f"(HTTP {status})" in text:
            return text
        request = getattr(error, "request_id", None)
        return f"{text} (HTTP {status})" + (f" (Request-ID: {request})" if request else "")
    return _one_line(_LIBRARY_NOISE.sub("", str(error))) or type(error).__name__


def may_not() -> str:
    """Return the text in place of a policy's rule: who may do it, and by which `--os-cloud`."""
    from openstack.config import OpenStackConfig

    said = "This user may not do that; an administrator may"
    names = OpenStackConfig().get_cloud_names()
    others = [name for name in (_ADMIN, f"{_ADMIN}-admin") if name in names]
    return f"{said}: --os-cloud {others[0]}" if others else said


def _one_line(text: object) -> str:
    return " ".join(str(text).split())
