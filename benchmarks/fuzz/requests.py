"""One hostile request, made of a seed and a number: the same ones give the same request."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from urllib.parse import quote, quote_from_bytes

from benchmarks.fuzz import values
from benchmarks.fuzz.surface import METHODS, Target

APIS = {
    **{"compute": 10, "placement": 6, "network": 3, "image": 3, "volume": 3},
    **{"clustering": 3, "identity": 1, "versions": 1},
}
#: the share of requests that an administrator makes
_AS_ADMIN = {
    **{"placement": 0.55, "compute": 0.55, "identity": 0.55},
    **{"network": 0.35, "image": 0.35, "volume": 0.35, "clustering": 0.2},
}
#: the microversions of an API: what each begins with, and the last one's number
_NEWEST = {"compute": ("2.", 103), "placement": ("1.", 39), "clustering": ("1.", 14)}
_TYPES = (
    "application/json",
    "text/plain",
    "application/xml",
    "",
    "application/json; charset=utf-8",
    *("multipart/form-data; boundary=x", "a" * 3000, "application/json-patch+json", "\xe9"),
)
_PATCH = "application/openstack-images-v2.1-json-patch"
_RARE = ("TRACE", "CONNECT", "get", "FOO", "PROPFIND", "A" * 30)
_HEADERS = (
    (
        "Accept",
        ("*/*", "text/html", "application/json;q=x", "x", ",", "text/html,application/json"),
    ),
    ("X-OpenStack-Request-ID", ("req-" + values.UUID, "x", "req-\xe9", "a" * 3000)),
    ("Host", ("evil/x", "a b", "", "a:b:c", "[::1", "x" * 5000)),
    ("X-Forwarded-Host", ("evil", '"><x', "a,b", "")),
    ("X-Forwarded-Proto", ("javascript", "https")),
    ("X-Forwarded-Prefix", ("//evil", "/x")),
    ("Forwarded", ("host=evil;proto=x", ";;;", "for=[", '"')),
    ("Content-Encoding", ("gzip", "x")),
    ("If-None-Match", ("*", "x")),
    (
        "If-Match",
        (
            *("*", "revision_number=0", '"revision_number=1"', "revision_number=\xb2", "W/"),
            *("revision_number=" + "9" * 18, "revision_number=-1, revision_number=2", '"'),
        ),
    ),
    ("X-OpenStack-Append", ("true", "x", "")),
    ("Range", ("bytes=0-1", "x")),
    ("Cookie", ("a=b", "\xff=;;", "a" * 5000)),
    ("X-Roles", ("admin",)),
    ("X-Identity-Status", ("Confirmed",)),
    ("X-Service-Token", ("x", "{member}")),
    ("Origin", ("null", "http://evil", "\xe9")),
    ("Content-Length", ("-1", "x", "²", "9" * 4400, "1, 1", "+1")),
    ("Transfer-Encoding", ("gzip", "chunked, chunked", "identity", "x")),
    ("Expect", ("100-continue", "x")),
)


@dataclass(frozen=True)
class Made:
    """A request to be sent; tokens are still names in braces."""

    api: str
    method: str
    target: str
    headers: tuple[tuple[str, str], ...]
    body: bytes
    breaks_protocol: bool
    """Whether the connection may be closed without an answer."""

    def replay_fields(self) -> dict[str, Any]:
        """Return what is needed to send it again."""
        return {
            "api": self.api,
            "request": f"{self.method} {self.target[:400]}",
            "headers": [f"{name}: {value[:200]}" for name, value in self.headers],
            "body": self.body[:600].decode("utf-8", "replace"),
        }


class Maker:
    """Makes requests; `known` is {kind: values that exist}, in a fixed order."""

    def __init__(
        self, seed: int, targets: Sequence[Target], known: Mapping[str, tuple[str, ...]]
    ) -> None:
        self._seed, self._known = seed, known
        self._by_api = {api: [t for t in targets if t.api == api] for api in APIS}

    def make(self, number: int) -> Made:
        """Return the request of a number."""
        rng = random.Random(f"{self._seed}:{number}")
        [api] = rng.choices(list(APIS), list(APIS.values()))
        target = rng.choice(self._by_api[api])
        method = self._method(rng, target)
        headers = self._headers(rng, target)
        body = b""
        if method in ("POST", "PUT", "PATCH") or rng.random() < 0.03:
            body = self._body(rng, target)
            if rng.random() < 0.9:
                headers.append(("Content-Type", _usual_type(target)))
            else:
                headers.append(("Content-Type", rng.choice(_TYPES)))
        framed, body, broken = _framed(rng, body, headers)
        return Made(api, method, self._target(rng, target), tuple(framed), body, broken)

    def _method(self, rng: random.Random, target: Target) -> str:
        if target.api == "identity" or rng.random() < 0.9:
            return target.method
        return rng.choice((*METHODS, *_RARE))

    def _target(self, rng: random.Random, target: Target) -> str:
        parts = [self._part(rng, part) for part in target.path.split("/")]
        path = "/".join(parts)
        how = rng.random()
        if how < 0.03:
            path += rng.choice(
                ("/", "//", "/..", "/../..", ";x", "/%2e%2e/%2e%2e/etc", "/" + "a" * 3000)
            )
        elif how < 0.04:
            path = path.replace("/", "//", 1) if rng.random() < 0.5 else "http://evil.test" + path
        query = self._query(rng, target)
        return path + (f"?{query}" if query else "")

    def _part(self, rng: random.Random, part: str) -> str:
        if not (part.startswith("{") and part.endswith("}")):
            return part
        name, how = part.strip("{}"), rng.random()
        known = self._known.get(name) or self._known["uuid"]
        if how < 0.5:
            return quote(rng.choice(known), safe="")
        if how < 0.6:
            return values.UUID
        if how < 0.9:
            return quote(rng.choice(values.TEXTS)[:1500], safe="")
        return quote_from_bytes(rng.randbytes(rng.randrange(1, 12)), safe="")

    def _query(self, rng: random.Random, target: Target) -> str:
        if rng.random() < (0.35 if target.method == "GET" else 0.9):
            return ""
        names = target.queries or (
            "limit",
            "marker",
            "name",
            "sort_key",
            "changes-since",
            "all_tenants",
        )
        pairs = []
        for _ in range(rng.choice((1, 1, 2, 3, 8))):
            name = rng.choice(names) if rng.random() < 0.9 else rng.choice(values.TEXTS)[:200]
            known = self._known.get(name) or self._known["uuid"]
            value = rng.choice(values.TEXTS)[:4500] if rng.random() < 0.75 else rng.choice(known)
            pairs.append(f"{quote(name, safe='')}={quote(value, safe='')}")
        if rng.random() < 0.03:
            pairs.append(rng.choice(("%ff=%fe", "%", "=&=&", "a=%zz", "limit=%00", "&" * 100)))
        return "&".join(pairs)[:7000]

    def _headers(self, rng: random.Random, target: Target) -> list[tuple[str, str]]:
        found = [("Host", "fuzz.test")]
        how = rng.random()
        if how < 0.95:
            looks_up = target.api == "identity" and target.method == "GET"
            mighty = looks_up or how < _AS_ADMIN.get(target.api, 0)
            found.append(("X-Auth-Token", "{admin}" if mighty else "{member}"))
        elif how < 0.97:
            found.append(
                ("X-Auth-Token", rng.choice(("x", "\xe9", "gAAAA" + "x" * 300, "a" * 5000, "")))
            )
        found += _version(rng, target.api)
        for _ in range(rng.choice((0, 0, 0, 0, 0, 1, 2))):
            name, given = rng.choice(_HEADERS)
            found = [pair for pair in found if pair[0] != name or rng.random() < 0.2]
            found.append((name, rng.choice(given)))
        return found

    def _body(self, rng: random.Random, target: Target) -> bytes:
        value: Any = values.hostile(rng)
        if target.bodies:
            value = values.of_schema(rng, rng.choice(target.bodies), self._known)
        elif target.action:
            value = {target.action: rng.choice((None, {}, {"type": "SOFT"}, {"type": "HARD"}))}
        return values.text_of(rng, values.spoil(rng, value))


def _version(rng: random.Random, api: str) -> list[tuple[str, str]]:
    top = _NEWEST.get(api)
    if top is None or rng.random() < 0.1:
        return []
    number = f"{top[0]}{rng.randint(1, top[1])}"
    if rng.random() < 0.06:
        number = rng.choice(
            ("2." + "9" * 4400, "1." + "9" * 4400, "9" * 4400 + ".1", "latest", "x", "2")
        )
    elif rng.random() < 0.03:
        number = rng.choice(
            ("", "2.\u0661".encode().decode("latin-1"), "2.1.1", "-2.1", "2.01", "3.0")
        )
    return [("OpenStack-API-Version", f"{api} {number}")]


def _framed(
    rng: random.Random, body: bytes, headers: list[tuple[str, str]]
) -> tuple[list[tuple[str, str]], bytes, bool]:
    """Return the headers with the body's length, the bytes, and whether they break HTTP."""
    if any(name in ("Content-Length", "Transfer-Encoding", "Expect") for name, _ in headers):
        return headers, body, True
    how = rng.random()
    if not body or how < 0.9:
        return [*headers, ("Content-Length", str(len(body)))], body, False
    if how < 0.94:
        return (
            [*headers, ("Content-Length", str(len(body) + rng.choice((-1, 1, 500))))],
            body,
            True,
        )
    chunked = [*headers, ("Transfer-Encoding", "chunked")]
    half = len(body) // 2
    good = b"%x\r\n%s\r\n%x\r\n%s\r\n0\r\n\r\n" % (
        half,
        body[:half],
        len(body) - half,
        body[half:],
    )
    if half and how < 0.97:
        return chunked, good, False
    bad = (b"zz\r\n" + body, b"-1\r\n" + body, good[:-4], b"5\r\n" + body + b"\r\n0\r\n\r\n")
    return (
        chunked,
        rng.choice((*bad, b"f" * 20 + b"\r\n" + body, b"0\r\nbad trailer\r\n\r\n")),
        True,
    )


def _usual_type(target: Target) -> str:
    """Return the content type that the operation takes."""
    if target.api == "image" and target.method == "PATCH":
        return _PATCH
    return (
        "application/octet-stream"
        if target.path.endswith(("/file", "/stage"))
        else "application/json"
    )
