"""What a cloud that is up says to type next: read by a shell as it is meant."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from cli.services import up
from tests.fixtures.nasty import IN_SHELLS, OPTIONS


def commands(text: str) -> list[list[str]]:
    return [shlex.split(line) for line in text.splitlines() if line.startswith("  ")]


@pytest.mark.parametrize("name", [*IN_SHELLS, *OPTIONS])
def test_an_image_of_any_name(name: str) -> None:
    text = up.further(Path("/var/lib/micronova"), 0, name, several_networks=True)
    _, create, _ = commands(text)
    assert create[:5] == ["openstack", "server", "create", "--flavor", "m1.small"]
    given = [f"--image={name}"] if name.startswith("-") else ["--image", name]
    assert create[5:] == [*given, "--network", "vmbr0", "--wait", "web-1"]


@pytest.mark.parametrize("servers", [0, 2])
@pytest.mark.parametrize("folder", ["a b", "it's", "$(reboot)", "a;b"])
def test_a_folder_of_any_name(folder: str, servers: int) -> None:
    text = up.further(Path("/srv") / folder, servers, "cirros", several_networks=False)
    export = commands(text)[0]
    assert export[:2] == ["export", f"OS_CLIENT_CONFIG_FILE=/srv/{folder}/clouds.yaml"]


def test_usual_names_are_as_they_were() -> None:
    text = up.further(Path("/srv/cloud"), 0, "debian-12", several_networks=False)
    assert "  export OS_CLIENT_CONFIG_FILE=/srv/cloud/clouds.yaml OS_CLOUD=" in text
    assert "--image debian-12 --wait web-1" in text
    assert "--image <image> --wait" in up.further(Path("/"), 0, "<image>", several_networks=False)
