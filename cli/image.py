"""``micronova image …``."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from typing import Any

from cli import columns
from cli.columns import Column, table
from cli.command import PAGING, Lister, Pairs, ShowOne, argument, flag, given, paging

_COLUMNS = (Column("ID", "id"), Column("Name", "name"), Column("Status", "status"))
_LONG = (
    Column("ID", "id"),
    Column("Name", "name"),
    Column("Disk Format", "disk_format"),
    Column("Container Format", "container_format"),
    Column("Size", "size"),
    Column("Checksum", "checksum"),
    Column("Status", "status"),
    Column("Visibility", "visibility"),
    Column("Protected", "is_protected"),
    Column("Project", "owner_id"),
    Column("Hash Algorithm", "hash_algo"),
    Column("Hash Value", "hash_value"),
    Column("Tags", "tags", columns.Listed),
)
#: what is shown by its own name; everything else is a property
_FIELDS = frozenset(
    (
        *("id", "name", "status", "visibility", "owner", "protected", "is_hidden"),
        *("size", "virtual_size", "disk_format", "container_format", "min_disk", "min_ram"),
        *("checksum", "hash_algo", "hash_value", "file", "schema", "created_at", "updated_at"),
    )
)


def image_shown(image: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Any, ...]]:
    """Return names and values of an image, what isn't a field of every image as properties."""
    known = {key: value for key, value in image.items() if key in _FIELDS}
    others = ("tags", "properties", "location")
    properties = {k: v for k, v in image.items() if k not in _FIELDS and k not in others}
    properties |= image.get("properties") or {}
    known["tags"] = columns.Listed(image.get("tags"))
    if properties:
        known["properties"] = columns.Pairs(properties)
    return columns.shown(known, {})


class ListImages(Lister):
    """List images."""

    arguments = (
        argument("--name", metavar="<name>", help="Only images of this name"),
        argument("--status", metavar="<status>", help="Only images of this status"),
        argument("--tag", metavar="<tag>", action="append", default=[], help="Only with this tag"),
        argument(
            "--property",
            metavar="<key=value>",
            action=Pairs,
            dest="properties",
            help="Only images with this property (repeat)",
        ),
        flag("--long", help="List additional fields"),
        *PAGING,
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each image, by name."""
        query = given(parsed_args, "name", "status", "tag") | paging(parsed_args)
        wanted = parsed_args.properties or {}
        images = [
            image
            for image in self.cloud.image.images(**query)
            if all(_property(image, key) == value for key, value in wanted.items())
        ]
        images.sort(key=lambda image: str(image.name))
        return table(_LONG if parsed_args.long else _COLUMNS, images)


class ShowImage(ShowOne):
    """Show an image."""

    arguments = (argument("image", metavar="<image>", help="Image (name or ID)"),)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return the image."""
        image = self.cloud.find("image", parsed_args.image)
        return image_shown(image.to_dict(ignore_none=True, original_names=True))


def _property(image: Any, key: str) -> str | None:
    value = (image.properties or {}).get(key, getattr(image, key, None))
    return None if value is None else str(value)
