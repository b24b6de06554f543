"""Identifiers: request IDs and UUIDs in the field's forms."""

from __future__ import annotations

import re
import uuid

_UUID = re.compile(r"[0-9a-f]{8}-?([0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)
_SPACE = re.compile(r"\s")
#: characters of an ID of a project or a user at most
_IDENTITY = 64
_REQUEST_ID = re.compile(r"req-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")

#: names that have no UUID of their own (bridges, image volumes) get one from this name space
NAMESPACE = uuid.UUID("8f6a5a7e-6f0e-5c39-9d0b-0f8b6f6d2f11")


#: kinds whose names get UUIDs in the form of random ones (version 4): some clients, such as
#: Skyline, treat an image with a UUID of another version as an error
_IN_RANDOM_FORM = frozenset({"image"})
#: the last bits of those UUIDs, by which they are recognised
_END, _END_BITS = NAMESPACE.int & 0xFFFFFFFF, 0xFFFFFFFF


def new_uuid() -> str:
    """Return a random UUID, lower case with dashes."""
    return str(uuid.uuid4())


def new_request_id() -> str:
    """Return a request ID in OpenStack's form: ``req-`` and a UUID."""
    return f"req-{uuid.uuid4()}"


def is_request_id(text: str) -> bool:
    """Return whether the text has the form of a request ID."""
    return _REQUEST_ID.fullmatch(text) is not None


def named(kind: str, name: str) -> str:
    """Return the UUID of a name: the same on every machine and in every release."""
    made = uuid.uuid5(NAMESPACE, f"{kind}:{name}")
    if kind in _IN_RANDOM_FORM:
        made = uuid.UUID(int=made.int & ~_END_BITS | _END, version=4)
    return str(made)


def is_of_name(text: str) -> bool:
    """Return whether an image's UUID may be that of a name."""
    return uuid.UUID(text).int & _END_BITS == _END


def numbered(kind: str, number: int) -> str:
    """Return a UUID that holds a number of less than 62 bits: see ``number_of``."""
    base = uuid.uuid5(NAMESPACE, kind).int >> 64 << 64
    return str(uuid.UUID(int=(base & ~(0xF << 76)) | (8 << 76) | (2 << 62) | number))


def number_of(kind: str, text: str) -> int | None:
    """Return the number that a UUID of this kind holds; None: it is none."""
    if not is_uuid(text):
        return None
    number = uuid.UUID(text).int & ((1 << 62) - 1)
    return number if numbered(kind, number) == str(uuid.UUID(text)) else None


def is_uuid(text: str) -> bool:
    """Return whether the text is a UUID, dashes optional (as in Nova)."""
    return _UUID.fullmatch(text) is not None


def is_identity(text: str) -> bool:
    """Return whether the text may be the ID of a project or a user, which Keystone chooses."""
    return 0 < len(text) <= _IDENTITY and text.isprintable() and not _SPACE.search(text)
