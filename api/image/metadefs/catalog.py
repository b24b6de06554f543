"""The metadata definitions of this cloud: made of the table of settings, at each start.

A setting that flavors call ``hw:x`` and images ``hw_x`` is defined once, under ``x``, and each
resource type has its prefix, as in Glance's own catalogue.
"""

from __future__ import annotations

import datetime
import functools
from collections.abc import Callable, Iterable
from typing import Any

from common.guest.settings import SETTINGS, Setting
from db.reads.images.metadefs import Item, Namespace

#: when they came, for clients that sort by it
SINCE = datetime.datetime(2026, 1, 1, tzinfo=datetime.UTC)
OWNER = "micronova"

FLAVOR, IMAGE, VOLUME = "OS::Nova::Flavor", "OS::Glance::Image", "OS::Cinder::Volume"
RESOURCE_TYPES = (
    *(FLAVOR, IMAGE, VOLUME),
    *("OS::Nova::Server", "OS::Nova::Aggregate", "OS::Cinder::VolumeType"),
)


def _item(kind: str, name: str, body: dict[str, Any]) -> Item:
    return Item(kind, name, body, SINCE, SINCE)


def _property(setting: Setting, name: str) -> Item:
    body: dict[str, Any] = {
        "title": setting.title,
        "description": setting.does,
        "type": setting.type,
    }
    if setting.values and setting.type == "string":
        body["enum"] = list(setting.values)
    if setting.type == "integer":
        body["minimum"] = 1
    return _item("property", name, body)


def _types(flavor: str | None, image: str | None) -> Iterable[Item]:
    """Return the associations: prefixes of flavors and of images; None: not of these."""
    if flavor is not None:
        yield _item("resource_type", FLAVOR, {"prefix": flavor or None})
    if image is not None:
        yield _item("resource_type", IMAGE, {"prefix": image or None})
        body = {"prefix": image or None, "properties_target": "image"}
        yield _item("resource_type", VOLUME, body)


def _namespace(
    name: str,
    title: str,
    description: str,
    named: Callable[[Setting], str],
    types: Iterable[Item],
) -> Namespace:
    properties = [_property(one, named(one)) for one in SETTINGS if named(one)]
    items = (*sorted(properties, key=lambda one: one.name), *types)
    return Namespace(name, title, description, "public", True, OWNER, SINCE, SINCE, items)


def _shared(flavor: str, image: str) -> Callable[[Setting], str]:
    """Return what names a setting of both without their prefixes; empty for others."""

    def named(one: Setting) -> str:
        if not (one.spec.startswith(flavor) and one.image_property.startswith(image)):
            return ""
        rest = one.spec.removeprefix(flavor)
        return rest if rest == one.image_property.removeprefix(image) else ""

    return named


_HW, _OS = _shared("hw:", "hw_"), _shared("os:", "os_")


def _alone(one: Setting) -> bool:
    return not (_HW(one) or _OS(one))


@functools.cache
def namespaces() -> tuple[Namespace, ...]:
    """Return all."""
    return (
        _namespace(
            "OS::Compute::ProxmoxVE::Hardware",
            "Guest hardware",
            "Hardware of servers that a flavor or an image asks for; if both do they must agree.",
            _HW,
            _types("hw:", "hw_"),
        ),
        _namespace(
            "OS::Compute::ProxmoxVE::Boot",
            "Guest boot",
            "How servers boot, by a flavor or an image.",
            _OS,
            _types("os:", "os_"),
        ),
        _namespace(
            "OS::Compute::ProxmoxVE::Flavor",
            "Flavor",
            "What only flavors ask for: devices, and bounds of disks and interfaces.",
            lambda one: one.spec if _alone(one) else "",
            _types("", None),
        ),
        _namespace(
            "OS::Compute::ProxmoxVE::Image",
            "Image",
            "What only images say of servers made of them.",
            lambda one: one.image_property if _alone(one) else "",
            _types(None, ""),
        ),
    )


def find(name: str) -> Namespace | None:
    """Return the one of a name; None: it is not built in."""
    return next((one for one in namespaces() if one.name == name), None)
