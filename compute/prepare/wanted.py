"""What a cluster is to have, as the command line says it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import PurePosixPath
from urllib.parse import urlsplit

from common.errors import ConfigurationError
from compute.hypervisor.proxmox.api import calls, privileges
from compute.hypervisor.proxmox.api.calls import Purpose
from compute.hypervisor.proxmox.api.privileges import Need
from compute.hypervisor.proxmox.settings import Token

OPTIONAL: Mapping[str, Purpose] = {
    "passwords": Purpose.PASSWORDS,
    "pings": Purpose.PINGS,
    "steering": Purpose.STEERING,
    "affinity": Purpose.AFFINITY,
    "zones": Purpose.ZONES,
    "devices": Purpose.DEVICES,
}
"""Purposes that most clouds do without, by the names of options."""

NEWEST = f"{calls.OWN_AGENT_SINCE}.0"
"""A version whose names all newer ones have."""

CONTENTS = ("images", "iso", "import")
"""The types of content that micronova uses."""

_VERSION = re.compile(r"[0-9]+(\.|$)")
_USER = re.compile(r"[^\s:/!@]+@[A-Za-z][\w.-]+")
_TOKEN_NAME = re.compile(r"[A-Za-z][\w.-]+")
_STORAGE = re.compile(r"[A-Za-z][A-Za-z0-9._-]*[A-Za-z0-9]")
_POOL = re.compile(r"[A-Za-z0-9._-]+(/[A-Za-z0-9._-]+){0,2}")
#: of a zone that is made; there is one whose name is longer, for plain bridges
_NEW_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9]{1,7}")
_ZONE = re.compile(r"[A-Za-z][A-Za-z0-9]+")
#: PVE::Storage accepts these as images (``POST …/download-url``, content ``import``)
_IMAGE = re.compile(r"[\w.-]+\.(qcow2|raw|vmdk)")


@dataclass(frozen=True)
class Zone:
    """A zone for networks of projects; without a type it must exist."""

    name: str
    type: str = ""
    options: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Image:
    """A file to be downloaded by the nodes."""

    file: str
    url: str


@dataclass(frozen=True)
class Wanted:
    """What a cluster is to have."""

    token: Token
    """Its secret is not known here."""
    purposes: tuple[str, ...] = ()
    """Of ``OPTIONAL``."""
    pool: str = ""
    contents: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Storage → types of content, added to what it has."""
    zones: tuple[Zone, ...] = ()
    images: tuple[Image, ...] = ()


def needs(wanted: Wanted, version: str) -> list[Need]:
    """Return the privileges of the token. Raises ConfigurationError for what is no version."""
    if _VERSION.match(version) is None:
        raise ConfigurationError(f"{version} is no version of Proxmox VE, such as 9.1.")
    found = [*privileges.documented(), *privileges.vnets(one.name for one in wanted.zones)]
    return found + [
        need for one in wanted.purposes for need in privileges.of(OPTIONAL[one], version)
    ]


def token(text: str) -> Token:
    """Return the token of ``user@realm!name``. Raises ConfigurationError."""
    user, _, name = text.partition("!")
    if not _TOKEN_NAME.fullmatch(name) or not _USER.fullmatch(user):
        raise ConfigurationError(f"{text} is no token: its form is user@realm!name.")
    return Token(user, name, "")


def pool(text: str) -> str:
    """Return a pool's name. Raises ConfigurationError."""
    if _POOL.fullmatch(text) is None:
        raise ConfigurationError(f"{text} is no name of a pool.")
    return text


def contents(given: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the contents of ``storage=images,iso``. Raises ConfigurationError."""
    found: dict[str, tuple[str, ...]] = {}
    for text in given:
        name, _, listed = text.partition("=")
        asked = tuple(listed.split(","))
        if _STORAGE.fullmatch(name) is None or not set(asked) <= set(CONTENTS):
            raise ConfigurationError(
                f"{text} is not storage=content: micronova uses {', '.join(CONTENTS)}."
            )
        found[name] = tuple(dict.fromkeys([*found.get(name, ()), *asked]))
    return found


def zone(text: str) -> Zone:
    """Return the zone of ``name`` or ``name=type[,option=value…]``. Raises ConfigurationError."""
    name, equals, rest = text.partition("=")
    # A comma is also within a value: peers=10.0.0.1,10.0.0.2
    kind, *options = re.split(r",(?=[a-z-]+=)", rest)
    pairs = [one.partition("=") for one in options]
    known = kind in (("vlan", "vxlan") if equals else ("",))
    named = (_NEW_ZONE if kind else _ZONE).fullmatch(name)
    if named is None or not known or not all(value for _, _, value in pairs):
        raise ConfigurationError(
            f"{text} is no zone: its form is name, or name=vxlan, or name=vlan,bridge=vmbr1."
        )
    return Zone(name, kind, {key: value for key, _, value in pairs})


def image(text: str) -> Image:
    """Return the image of ``url`` or ``file=url``. Raises ConfigurationError."""
    file, _, url = text.partition("=") if not text.startswith("http") else ("", "", text)
    file = file or PurePosixPath(urlsplit(url).path).name
    if urlsplit(url).scheme not in ("http", "https") or _IMAGE.fullmatch(file) is None:
        raise ConfigurationError(
            f"{text} is no image: its form is [file=]https://…, and the file's name ends with "
            ".qcow2, .raw or .vmdk."
        )
    return Image(file, url)


def wanted(
    token_id: str,
    purposes: Sequence[str] = (),
    zones: Sequence[str] = (),
    *,
    pool_name: str = "",
    storages: Sequence[str] = (),
    images: Sequence[str] = (),
) -> Wanted:
    """Return what the texts of the options say. Raises ConfigurationError, one line."""
    return Wanted(
        token(token_id),
        tuple(dict.fromkeys(purposes)),
        pool(pool_name) if pool_name else "",
        contents(storages),
        tuple(zone(one) for one in zones),
        tuple(image(one) for one in images),
    )
