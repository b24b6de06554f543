"""``micronova image publish`` and ``keypair publish``: the same thing in other regions, verified.

A copy is made only where there is none. What exists already must be the same: of an image its
ID and SHA-512, of a key pair its name and fingerprint. So a command that ended in the middle is
given again.
"""

from __future__ import annotations

import argparse
import contextlib
import hashlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import Any

from cli.audits import answer
from cli.cloud import Cloud
from cli.command import Lister, argument
from cli.errors import CommandFailed
from cli.finding import look_up

_HEADERS = ("Region", "ID", "Result")
_THERE, _PUBLISHED = "is there already", "published"
_ALGORITHM = "sha512"
_PIECE_BYTES = 1 << 20
_LOOKS, _LOOK_SECONDS = 600, 1.0
#: of an image what the copy gets too; its other properties are copied as they are
_COPIED = ("name", "disk_format", "container_format", "min_disk", "min_ram", "visibility", "tags")
#: what each region's own image API says of an image
_OWN = frozenset(
    (
        *("id", "status", "size", "virtual_size", "checksum", "os_hash_algo", "os_hash_value"),
        *("created_at", "updated_at", "owner", "self", "file", "schema", "direct_url"),
        *("locations", "os_hidden", "protected", "stores"),
    )
)
TO = argument(
    "--to",
    metavar="<region>",
    action="append",
    default=[],
    help="Region to publish to (repeat; default: all others of the catalog)",
)


class Publish(Lister):
    """A command that copies something to other regions, one after the other."""

    def publish(
        self, named: list[str], one: Callable[[Cloud], tuple[str, str]]
    ) -> tuple[tuple[str, ...], list[tuple[str, ...]]]:
        """Return a row for each region; what failed is said, and makes the exit code 1.

        :param one: publishes to a region; returns the ID there, and what was done.
        """
        rows: list[tuple[str, ...]] = []

        def publish(region: str) -> None:
            # An upload takes any time: only its connection is bounded.
            rows.append((region, *one(self.cloud.in_region(region, _LOOKS))))

        targets = self._targets(named)
        try:
            self.each(targets, "publish to region", publish)
        except CommandFailed:
            self.exit_code = 1  # each has had its line
        return _HEADERS, rows

    def _targets(self, named: list[str]) -> list[str]:
        known = self.cloud.regions()
        here = self.cloud.connection.config.get_region_name("compute")
        unknown = sorted(set(named) - set(known))
        if unknown:
            raise CommandFailed(f"No region named '{unknown[0]}'. There are: {', '.join(known)}")
        found = [one for one in named or known if one != here]
        if not found:
            raise CommandFailed(f"There is no other region than {here} to publish to")
        return list(dict.fromkeys(found))


class PublishKeypair(Publish):
    """Create a key pair of this region in other ones. Only the public key is copied."""

    arguments = (argument("name", metavar="<name>", help="Key pair"), TO)

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each region."""
        wanted = look_up(self.cloud.compute, "keypair", "keypairs", parsed_args.name)
        return self.publish(parsed_args.to, lambda cloud: _keypair(wanted, cloud.compute))


class PublishImage(Publish):
    """Copy an image of this region to other ones, under the same ID.

    Its data are sent on as they are read: from this region, if it has them ([images] keep_data),
    else from --file. Both regions' SHA-512 must be that of the data: an upload of other data
    breaks off, and leaves a queued image, which the same command continues.
    """

    arguments = (
        argument("image", metavar="<image>", help="Image (name or ID)"),
        TO,
        argument(
            "--file",
            metavar="<file>",
            type=Path,
            help="The image's data, which are not read from this region then",
        ),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Return a row for each region."""
        found = self.cloud.find("image", parsed_args.image)
        wanted = answer(self.cloud.image.get(f"/images/{found.id}"))
        if wanted["status"] != "active":
            raise CommandFailed(f"Image {wanted['name']} is {wanted['status']}")
        if wanted.get("os_hash_algo") != _ALGORITHM or not wanted.get("os_hash_value"):
            raise CommandFailed(
                f"Image {wanted['name']} has no SHA-512 to verify a copy by: it was not uploaded "
                "through the image API"
            )
        return self.publish(
            parsed_args.to,
            lambda cloud: Copy(wanted, cloud, lambda: self._data(wanted, parsed_args.file)).made(),
        )

    @contextlib.contextmanager
    def _data(self, image: Mapping[str, Any], file: Path | None) -> Iterator[Iterator[bytes]]:
        """Open the image's data. Raises CommandFailed or the SDK's error."""
        if file is None:
            from openstack.exceptions import raise_from_response

            with self.cloud.image.get(f"/images/{image['id']}/file", stream=True) as response:
                raise_from_response(response)
                yield response.iter_content(_PIECE_BYTES)
            return
        try:
            opened = file.expanduser().open("rb")
        except OSError as error:
            raise CommandFailed(f"Can't read {file}: {error.strerror}") from error
        with opened:
            yield iter(partial(opened.read, _PIECE_BYTES), b"")


class Copy:
    """An image that is copied from one region to another."""

    def __init__(
        self,
        image: Mapping[str, Any],
        target: Cloud,
        data: Callable[[], AbstractContextManager[Iterator[bytes]]],
    ) -> None:
        self._image, self._data = image, data
        self._target, self._api = target, target.image
        self._path = f"/images/{image['id']}"
        self._sum = hashlib.new(_ALGORITHM)

    def made(self) -> tuple[str, str]:
        """Return the image's ID and what was done. Raises CommandFailed or the SDK's error."""
        there = self._there()
        if there is not None and there["status"] == "active":
            self._require_same(there)
            return there["id"], _THERE
        if there is None:
            answer(self._api.post("/images", json=self._body()))
        elif there["status"] != "queued":
            raise CommandFailed(f"an image of this ID is {there['status']} there")
        self._send()
        active = self._active()
        try:
            self._require_same(active)
        except CommandFailed:
            self._api.delete(self._path)
            raise
        return str(self._image["id"]), _PUBLISHED

    def _there(self) -> Mapping[str, Any] | None:
        response = self._api.get(self._path)
        if response.status_code == 404:
            return None
        found: Mapping[str, Any] = answer(response)
        return found

    def _body(self) -> dict[str, Any]:
        further = {k: v for k, v in self._image.items() if k not in _OWN and v is not None}
        named = {name: self._image[name] for name in _COPIED if name in self._image}
        return {**further, **named, "id": self._image["id"]}

    def _send(self) -> None:
        from openstack.exceptions import raise_from_response

        with self._data() as pieces:
            raise_from_response(
                self._api.put(
                    f"{self._path}/file",
                    data=self._summed(pieces),
                    headers={"Content-Type": "application/octet-stream", "Accept": ""},
                )
            )

    def _summed(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        for piece in pieces:
            self._sum.update(piece)
            yield piece
        # What ends here was not sent to its end: the copy remains queued, and is continued.
        if self._sum.hexdigest() != self._image["os_hash_value"]:
            raise CommandFailed("the data read has another SHA-512 than the image")

    def _active(self) -> Mapping[str, Any]:
        for _ in range(_LOOKS):
            found: Mapping[str, Any] = answer(self._api.get(self._path))
            if found["status"] == "active":
                return found
            if found["status"] not in ("queued", "saving", "importing"):
                raise CommandFailed(f"the copy is {found['status']}")
            self._target.pause(_LOOK_SECONDS)
        raise CommandFailed(f"the copy is not active after {_LOOKS * _LOOK_SECONDS:g} s")

    def _require_same(self, there: Mapping[str, Any]) -> None:
        if (there.get("os_hash_algo"), there.get("os_hash_value")) != (
            _ALGORITHM,
            self._image["os_hash_value"],
        ):
            raise CommandFailed("the image of this ID there has other data, by its SHA-512")


def _keypair(wanted: Any, compute: Any) -> tuple[str, str]:
    """Publish a key pair; return its name and what was done. Raises CommandFailed."""
    there = compute.find_keypair(wanted.name, ignore_missing=True)
    done = _THERE
    if there is None:
        kind = {"key_type": wanted.type} if wanted.type else {}
        there = compute.create_keypair(name=wanted.name, public_key=wanted.public_key, **kind)
        done = _PUBLISHED
    if there.fingerprint != wanted.fingerprint:
        raise CommandFailed(f"a key pair of this name there is another one: {there.fingerprint}")
    return str(there.name), done
