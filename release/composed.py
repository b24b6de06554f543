"""``python -m release.composed FILE``: the proxy's configuration within the compose file.

It is made of that of two machines, ``etc/haproxy/haproxy.cfg``: how requests are repeated, and how
services are asked whether they serve, is written there alone.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PROXY = ROOT / "etc" / "haproxy" / "haproxy.cfg"
_INDENT = 6 * " "
_BLOCK = re.compile(r"(  haproxy\.cfg:\n    content: \|\n)((?: {6}.*\n|\n)*)")
_SECTION = re.compile(r"^(\w+)", re.MULTILINE)

_HEAD = "# Made of etc/haproxy/haproxy.cfg by `tox -e generate`; changes here are lost.\n"
#: containers come and go, and their addresses with them
_RESOLVED = " init-addr last,libc,none resolvers names"
_REPEATED = "    http-request disable-l7-retry unless METH_GET or METH_HEAD"
_FORWARDED = """\
    http-request set-header X-Forwarded-Proto http
    http-request set-header X-Forwarded-Host %[req.hdr(Host)]
    http-request set-header X-Forwarded-For %[src]
    http-request del-header X-Forwarded-Prefix
"""
_HEALTH = """\
resolvers names
    parse-resolv-conf

# Asked by the container's own health check.
frontend health
    bind 127.0.0.1:8404
    monitor-uri /healthz
    monitor fail if { nbsrv(public) eq 0 }
"""
_FRONTENDS = {
    **{"public": 8774, "identity": 8775, "console": 8776, "placement": 8778},
    "dashboard": 8780,
}
_BACKENDS = """\
backend public
    server public-1 public-1:8774 check port 18774
    server public-2 public-2:8774 check port 18774

backend placement
    server placement-1 placement-1:8778 check port 18778
    server placement-2 placement-2:8778 check port 18778

# Keystone has no port for operators.
backend identity
    option httpchk GET /v3
    http-check expect status 200
    server identity identity:8775 check

# The page and its websocket are of one proxy, and a console may be silent for long.
backend console
    balance source
    timeout tunnel 1h
    server console-1 console-1:6080 check port 18779
    server console-2 console-2:6080 check port 18779

backend dashboard
    server dashboard-1 dashboard-1:8780 check port 18780
    server dashboard-2 dashboard-2:8780 check port 18780
"""


def sections(text: str) -> dict[str, str]:
    """Return {first word: text} of the sections of a configuration."""
    starts = [found.start() for found in _SECTION.finditer(text)]
    parts = [text[a:b] for a, b in zip(starts, [*starts[1:], len(text)], strict=True)]
    return {part.split(maxsplit=1)[0]: part.rstrip() + "\n" for part in parts}


def creates(frontend: str) -> str:
    """Return a frontend's rules about requests that are repeated."""
    found = []
    for line in frontend.splitlines()[1:]:
        if line.strip().startswith(("acl ", "#")) or "METH_POST" in line:
            found.append(line)
    return "\n".join(found) + "\n"


def proxy(text: str) -> str:
    """Return the configuration for containers, made of that for two machines."""
    found = sections(text)
    defaults = re.sub(r"^( +default-server .*)$", rf"\1{_RESOLVED}", found["defaults"], flags=re.M)
    parts = [found["global"], defaults, _HEALTH, *_frontends(found["frontend"]), _BACKENDS]
    return _HEAD + "\n".join(parts)


def _frontends(printed: str) -> Iterator[str]:
    for name, port in _FRONTENDS.items():
        rules = creates(printed) if name == "public" else _REPEATED + "\n"
        yield (
            f"frontend {name}\n    bind :{port}\n{rules}{_FORWARDED}    default_backend {name}\n"
        )


def written(compose: str, text: str) -> str:
    """Return a compose file with this configuration of its proxy."""
    lines = "".join(f"{_INDENT}{line}\n" if line else "\n" for line in text.splitlines())
    made, count = _BLOCK.subn(lambda found: found[1] + lines + "\n", compose)
    if count != 1:
        raise ValueError(f"{count} blocks of haproxy.cfg, not one")
    return made


if __name__ == "__main__":
    file = Path(sys.argv[1])
    made = written(file.read_text(encoding="utf-8"), proxy(PROXY.read_text(encoding="utf-8")))
    file.write_text(made, encoding="utf-8")
