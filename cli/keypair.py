"""``micronova keypair create``: our own, to protect the file of a private key.

python-openstackclient writes it with the default permissions, and overwrites an existing file.
"""

from __future__ import annotations

import argparse
import os
from pathlib import Path
from typing import Any

from cli.columns import shown
from cli.command import ShowOne, argument, one_of
from cli.errors import CommandFailed


class CreateKeypair(ShowOne):
    """Create a keypair from a public key, or generate one.

    Generated are ed25519 keys, on this machine: the cloud never sees the private half.
    """

    arguments = (
        argument("name", metavar="<name>", help="Name"),
        one_of(
            argument("--public-key", metavar="<file>", help="File of the public key to add"),
            argument(
                "--private-key",
                metavar="<file>",
                help="New file for the generated private key (default: print it)",
            ),
        ),
        argument(
            "--type", metavar="<type>", choices=("ssh", "x509"), help="ssh (default) or x509"
        ),
        argument("--user", metavar="<user>", help="Of this user (name or ID) (admin only)"),
        argument("--user-domain", metavar="<domain>", help="Domain of --user"),
    )

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        """Create it. The private key is on disk before the cloud knows the public one."""
        attributes = {"name": parsed_args.name}
        if parsed_args.user:
            user = self.cloud.user_id(parsed_args.user, parsed_args.user_domain)
            attributes["user_id"] = user
        if parsed_args.type:
            attributes["key_type"] = parsed_args.type
        private = None
        if parsed_args.public_key:
            attributes["public_key"] = _read(parsed_args.public_key)
        else:
            private, attributes["public_key"] = generate()
            if parsed_args.private_key:
                write_private(Path(parsed_args.private_key).expanduser(), private)
        keypair = self.cloud.compute.create_keypair(**attributes)
        if private is not None and not parsed_args.private_key:
            self.app.stdout.write(private)
            return (), ()
        return shown(keypair.to_dict(), {}, ("links", "public_key", "private_key"))


def generate() -> tuple[str, str]:
    """Return a new private key (OpenSSH's format) and its public key."""
    from cryptography.hazmat.primitives import serialization
    from cryptography.hazmat.primitives.asymmetric import ed25519

    key = ed25519.Ed25519PrivateKey.generate()
    private = key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.OpenSSH,
        serialization.NoEncryption(),
    )
    public = key.public_key().public_bytes(
        serialization.Encoding.OpenSSH, serialization.PublicFormat.OpenSSH
    )
    return private.decode(), public.decode()


def write_private(path: Path, text: str) -> None:
    """Write a private key to a new file that only its owner can read.

    :raises CommandFailed: the file exists, or can't be written.
    """
    try:
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with os.fdopen(descriptor, "w") as file:
            file.write(text)
    except FileExistsError:
        raise CommandFailed(f"{path} exists: a private key is never overwritten") from None
    except OSError as error:
        raise CommandFailed(f"Can't write {path}: {error.strerror}") from error


def _read(name: str) -> str:
    path = Path(name).expanduser()
    try:
        return path.read_text().strip()
    except OSError as error:
        raise CommandFailed(f"Can't read {path}: {error.strerror}") from error
