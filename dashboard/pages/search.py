"""Search everything: names, IDs, addresses, requests, VMIDs; each kind by one request."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeAlias
from urllib.parse import urlencode

from common import ids
from dashboard import addresses
from dashboard.answer import Answer, Redirect, view
from dashboard.cloud import COMPUTE, IMAGE, NETWORK, VOLUME, Call, Missing, rows, segment
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PATH = "/search"
_LONGEST = 255
#: hits of a kind that are shown
_SHOWN = 20
#: images and networks that are read, as their APIs search for whole names only
_READ = 1000
_MAC = re.compile(r"[0-9a-f]{2}(:[0-9a-f]{2}){5}", re.IGNORECASE)
_VMID = re.compile(r"[0-9]{3,9}")
_EVERYBODYS = {"all_tenants": 1}

Facts: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class Hit:
    """Something that was found."""

    text: str
    path: str
    """Its page."""
    note: str = ""


@dataclass(frozen=True)
class Kind:
    """What is asked for, and what its answer has."""

    title: str
    call: Call
    hits: Callable[[Any], Iterable[Hit]]
    more: str = ""
    """The path of a list of all that match."""
    read: str = ""
    """The answer's list, where only so many are read, and searched here."""


@dataclass(frozen=True)
class Found:
    """The hits of a kind."""

    title: str
    hits: list[Hit]
    more: str = ""
    rest: bool = False
    """Whether there are more than are shown."""
    missing: str = ""
    """Why nobody knows, in the API's words."""
    read: int = 0
    """Of how many only it is known, where there are more; 0: of all."""


@dataclass
class _Seen:
    """The pages that hits have led to."""

    paths: set[str] = field(default_factory=set)

    def new(self, hits: Iterable[Hit]) -> Iterator[Hit]:
        """Yield those that lead elsewhere: a port's address is its server's as well."""
        for one in hits:
            if one.path not in self.paths:
                self.paths.add(one.path)
                yield one


def show(visit: Visit) -> Answer:
    """Show what was found by kind; a single hit is gone to."""
    wanted = visit.query.get("for", "").strip()[:_LONGEST]
    kinds = list(_kinds(visit, wanted)) if wanted else []
    answers = visit.cloud.together(*(one.call for one in kinds)) if kinds else []
    seen = _Seen()
    found = [_found(kind, answer, seen) for kind, answer in zip(kinds, answers, strict=True)]
    hits = [hit for one in found for hit in one.hits]
    if len(hits) == 1 and not any(one.missing or one.read for one in found):
        return Redirect(hits[0].path)
    return view("search.html", wanted=wanted, found=found, count=len(hits))


def _found(kind: Kind, answer: Any, seen: _Seen) -> Found:
    if isinstance(answer, Missing):
        # by an ID, every kind but one has nothing
        return Found(kind.title, [], missing="" if answer.status == 404 else answer.message)
    hits = list(seen.new(kind.hits(answer)))
    return Found(
        kind.title, hits[:_SHOWN], kind.more, len(hits) > _SHOWN, read=_read(kind, answer)
    )


def _read(kind: Kind, answer: Facts) -> int:
    """Return how many were read where the answer has a link to more of them."""
    if not kind.read:
        return 0
    linked = (one["rel"] == "next" for one in answer.get(f"{kind.read}_links", ()))
    return len(answer[kind.read]) if answer.get("next") or any(linked) else 0


def _kinds(visit: Visit, wanted: str) -> Iterator[Kind]:
    if ids.is_request_id(wanted):
        yield _request(wanted)
    elif ids.is_uuid(wanted):
        yield from _by_id(wanted)
    elif addresses.is_part(wanted) or _MAC.fullmatch(wanted):
        yield from _by_address(visit, wanted)
    else:
        yield from _by_name(visit, wanted)
        if visit.may(May.OPERATE) and _VMID.fullmatch(wanted):
            call = Call(COMPUTE, "/vmids", {"vmid": wanted, "limit": _SHOWN + 1}, optional=True)
            yield Kind("VMIDs", call, lambda found: map(_vmid, rows(found, "vmids")))


def _request(wanted: str) -> Kind:
    call = Call(COMPUTE, f"/explanations/{segment(wanted)}", optional=True)
    hit = Hit(wanted, f"/explain?{urlencode({'what': wanted})}")
    done = "operations"
    return Kind("Requests", call, lambda found: [hit] if found["explanation"].get(done) else [])


def _by_id(wanted: str) -> Iterator[Kind]:
    part, query = segment(wanted.lower()), {"id": wanted.lower()}
    server = Call(COMPUTE, f"/servers/{part}", optional=True)
    yield Kind("Servers", server, lambda found: [_server(found["server"])])
    volume = Call(VOLUME, f"/volumes/{part}", optional=True)
    yield Kind("Volumes", volume, lambda found: [_volume(found["volume"])])
    yield Kind(
        "Images", Call(IMAGE, f"/v2/images/{part}", optional=True), lambda found: [_image(found)]
    )
    network = Call(NETWORK, "/v2.0/networks", query, optional=True)
    yield Kind("Networks", network, lambda found: map(_network, rows(found, "networks")))
    port = Call(NETWORK, "/v2.0/ports", query, optional=True)
    yield Kind("Ports", port, lambda found: map(_port, rows(found, "ports")))


def _by_address(visit: Visit, wanted: str) -> Iterator[Kind]:
    if _MAC.fullmatch(wanted):
        asked: dict[str, str] = {"mac_address": wanted.lower()}
    else:
        searched = "ip_address" if addresses.is_whole(wanted) else "ip_address_substr"
        asked = {"fixed_ips": f"{searched}={wanted}"}
        yield _servers(visit, wanted)
    call = Call(NETWORK, "/v2.0/ports", {**asked, "limit": _READ}, optional=True)
    yield Kind("Ports", call, lambda found: map(_port, rows(found, "ports")), read="ports")


def _by_name(visit: Visit, wanted: str) -> Iterator[Kind]:
    scope = _scope(visit)
    yield _servers(visit, wanted)
    query = {"name~": wanted, "limit": _SHOWN + 1, **scope}
    volumes = Call(VOLUME, "/volumes", query, optional=True)
    more = f"/volumes?{urlencode({'name': wanted})}"
    yield Kind("Volumes", volumes, lambda found: map(_volume, rows(found, "volumes")), more)
    images = Call(IMAGE, "/v2/images", {"limit": _READ, "sort": "name:asc"}, optional=True)
    yield Kind(
        "Images",
        images,
        lambda found: map(_image, _named(found, "images", wanted)),
        read="images",
    )
    fields = {"fields": ["id", "name"], "limit": _READ}
    networks = Call(NETWORK, "/v2.0/networks", fields, optional=True)
    yield Kind(
        "Networks",
        networks,
        lambda found: map(_network, _named(found, "networks", wanted)),
        read="networks",
    )


def _servers(visit: Visit, wanted: str) -> Kind:
    """Return those with such a name, or beginning of an ID, an address or a tag."""
    scope = _scope(visit)
    query = {"limit": _SHOWN + 1, **scope}
    older = {**query, "name": re.escape(wanted)}
    call = Call(
        COMPUTE, "/servers", {**query, "micronova:search": wanted}, older=older, optional=True
    )
    more = f"/servers?{urlencode({'q': wanted, **scope})}"
    return Kind("Servers", call, lambda found: map(_server, rows(found, "servers")), more)


def _scope(visit: Visit) -> Mapping[str, Any]:
    return _EVERYBODYS if visit.operates else {}


def _named(found: Any, key: str, wanted: str) -> list[Facts]:
    part = wanted.casefold()
    return [one for one in rows(found, key) if part in str(one["name"] or "").casefold()]


def _server(one: Facts) -> Hit:
    return Hit(one["name"] or one["id"], f"/servers/{one['id']}", str(one.get("status", "")))


def _volume(one: Facts) -> Hit:
    return Hit(one["name"] or one["id"], f"/volumes/{one['id']}", str(one.get("status", "")))


def _image(one: Facts) -> Hit:
    return Hit(one["name"] or one["id"], f"/images/{one['id']}", one["status"])


def _network(one: Facts) -> Hit:
    return Hit(one["name"] or one["id"], f"/networks/{one['id']}")


def _port(one: Facts) -> Hit:
    """Return a port's server, or its network, which lists it."""
    text = ", ".join(ip["ip_address"] for ip in one["fixed_ips"]) or one["id"]
    device = one["device_id"]
    path = f"/servers/{device}" if device else f"/networks/{one['network_id']}"
    note = f"{one['mac_address']}, {'of a server' if device else 'of no server'}"
    return Hit(text, path, note)


def _vmid(one: Facts) -> Hit:
    server, is_its = one["server"], one["state"] == "reserved"
    text, note = f"VMID {one['vmid']} of {one['cluster']}", one["reason"] or one["state"]
    if server:
        path = f"/servers/{server}" if is_its else f"/explain?{urlencode({'what': server})}"
        return Hit(text, path, note)
    return Hit(text, f"/images/{one['image']}" if one["image"] else "/nodes", note)


PAGES = (Page(PATH, show, calls=5),)
