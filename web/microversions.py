"""Microversions: which one a request asks for, and values that change with them.

An API gives its history and its words as `Microversions`. An API has one major version; inside,
a version is the int after the dot.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

import falcon

from common import digits
from common.errors import Invalid
from web.errors import NotAcceptable

T = TypeVar("T")

LATEST = "latest"


@dataclass(frozen=True)
class Microversions:
    """The microversions of one API, and how requests and answers name them."""

    service: str
    """The API's name in the header."""
    major: int
    history: Mapping[int, str]
    """Version → what it changed; without gaps."""
    entry: re.Pattern[str]
    """One entry of the header that is for this API; group 1 is what it asks for."""
    header: str = "OpenStack-API-Version"
    """The header's name, in the spelling used in `Vary`."""
    number: re.Pattern[str] = re.compile(r"([1-9][0-9]*)\.([1-9][0-9]*|0)", re.ASCII)
    """A well-formed version; groups: major, minor."""
    malformed: str = (
        "API Version String {asked} is of invalid format. Must be of format MajorNum.MinorNum."
    )
    """The message for any other text; `{asked}` is the text. It is Nova's and Cinder's."""
    not_served: str = (
        "Version {asked} is not supported by the API. Minimum is {oldest} and maximum is {newest}."
    )
    """The message for a version that isn't served; also `{oldest}`, `{newest}`."""
    legacy_header: str | None = None
    """An older header, which holds the number only."""

    @functools.cached_property
    def oldest(self) -> int:
        """The version of requests that name none."""
        return min(self.history)

    @functools.cached_property
    def newest(self) -> int:
        """The version that `latest` is."""
        return max(self.history)

    def text(self, version: int) -> str:
        """Return the version in the form of headers and documents, such as `2.90`."""
        return f"{self.major}.{version}"

    def negotiate(self, req: falcon.Request, resp: falcon.Response) -> int:
        """Return the version that a request asks for; the answer's headers name it.

        Raises as `asked` does.
        """
        legacy = req.get_header(self.legacy_header) if self.legacy_header else None
        version = self.asked(req.get_header(self.header), legacy)
        resp.set_header(self.header, f"{self.service} {self.text(version)}")
        if self.legacy_header is None:
            resp.append_header("Vary", self.header)
        else:
            resp.set_header(self.legacy_header, self.text(version))
            resp.append_header("Vary", f"{self.header}, {self.legacy_header}")
        return version

    def asked(self, header: str | None, legacy: str | None = None) -> int:
        """Return the version that the headers' values ask for; the oldest if they name none.

        Raises Invalid for a malformed version, NotAcceptable for a version that isn't served.
        """
        asked = self._entry(header) or (legacy or "").strip()
        if not asked:
            return self.oldest
        if asked == LATEST:
            return self.newest
        form = self.number.fullmatch(asked)
        if form is None:
            raise Invalid(self.malformed.format(asked=asked))
        major = digits.number(form[1], self.major + 1)
        minor = digits.number(form[2], self.newest + 1)
        if major != self.major or minor is None or minor not in self.history:
            limits = {"min": self.text(self.oldest), "max": self.text(self.newest)}
            message = self.not_served.format(
                asked=asked, oldest=limits["min"], newest=limits["max"]
            )
            raise NotAcceptable(message, **limits)
        return minor

    def _entry(self, header: str | None) -> str | None:
        """Return what a header for several services asks of this one; the last entry counts."""
        found = None
        for part in (header or "").split(","):
            entry = self.entry.fullmatch(part.strip())
            if entry is not None:
                found = entry[1].strip()
        return found


def parse(named: str) -> int:
    """Return the version of a text in our own tables, such as `2.90`."""
    return int(named.partition(".")[2])


class Versioned(Generic[T]):
    """A value that changes with the version: `Versioned({"2.1": a, "2.19": b})`."""

    def __init__(self, changes: Mapping[str, T]) -> None:
        self._changes = sorted(
            ((parse(named), value) for named, value in changes.items()), key=lambda item: item[0]
        )

    def at(self, version: int) -> T | None:
        """Return the value at a version; None before the first one."""
        found = None
        for since, value in self._changes:
            if since > version:
                break
            found = value
        return found

    def items(self) -> list[tuple[int, T]]:
        """(since, value), oldest first."""
        return list(self._changes)
