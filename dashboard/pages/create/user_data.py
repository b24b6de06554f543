"""Templates of user data: texts for cloud-init that the form's field begins with."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """One text to begin with."""

    name: str
    """In the form."""
    title: str
    text: str


_AGENT = """\
#cloud-config
# QEMU's guest agent: addresses, orderly shutdowns, quiet snapshots, passwords.
package_update: true
packages:
  - qemu-guest-agent
runcmd:
  - [systemctl, enable, --now, qemu-guest-agent]
"""

# cloud-init fills in the key pair, whichever it is then: its values are not of this program.
_USER = """\
## template: jinja
#cloud-config
# A user beside the image's own, who logs in by the server's key pair and may become root.
users:
  - default
  - name: operator
    gecos: Operator
    shell: /bin/bash
    sudo: ALL=(ALL) NOPASSWD:ALL
    lock_passwd: true
    ssh_authorized_keys: {{ v1.public_ssh_keys | default([], true) | tojson }}
"""

_DOCKER = """\
#cloud-config
# A host for containers. The package is named so on Debian and Ubuntu; on Fedora it is
# moby-engine, on Alpine and Arch docker.
package_update: true
packages:
  - docker.io
runcmd:
  - [systemctl, enable, --now, docker]
  # The image's own user may use it without sudo, which is as much as root may.
  - usermod --append --groups docker "$(id --name --user 1000)"
"""

TEMPLATES = (
    Template("", "empty", ""),
    Template("agent", "install the guest agent", _AGENT),
    Template("user", "add a user with the key pair", _USER),
    Template("docker", "a host for Docker", _DOCKER),
)
_BY_NAME: Mapping[str, Template] = {one.name: one for one in TEMPLATES}


def text_of(name: str) -> str:
    """Return a template's text; nothing for a template that doesn't exist."""
    found = _BY_NAME.get(name)
    return found.text if found else ""
