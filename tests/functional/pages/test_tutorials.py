"""docs/tutorials: each is carried out, line by line, as a reader would."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

import pytest
import yaml

from tests.functional import backends
from tests.functional.cloud import EmbeddedCloud, embedded_cloud
from tests.functional.pages.played import Played, Player
from tests.functional.pages.reading import Desk
from tests.functional.pages.tutorials import (
    ANNA,
    HOMELAB,
    INSTALL,
    LOGIN,
    PREPARE,
    SCRAPES,
    TEAM,
    UP,
)
from tests.functional.unprepared import at_a_terminal, unprepared
from tests.pages import block

pytestmark = [pytest.mark.timeout(2400), pytest.mark.filterwarnings("ignore")]

PROGRAMS = Path(sys.executable).parent
PROMTOOL = backends.program("promtool")


def test_the_installation_is_that_of_its_page() -> None:
    """tests/functional/test_installed.py carries it out."""
    [text] = INSTALL.texts()
    assert set(text.splitlines()[:2]) <= set(
        block("docs/install.md", "", "micronova up --demo").splitlines()
    )


def test_a_homelab(tmp_path: Path) -> None:
    home = tmp_path / "home"
    (home / ".ssh").mkdir(parents=True)
    (home / "micronova").mkdir()
    (home / "micronova" / "bin").symlink_to(PROGRAMS)
    nobody = {"HOME": str(home), "XDG_CONFIG_HOME": "", "XDG_STATE_HOME": ""}
    path = f"PATH={home}/micronova/bin:$PATH"
    desk = Desk(home)
    with unprepared(tmp_path / "simulator", nodes=1, speed=50.0) as cluster:
        prepare, up = (
            one.strip().replace("https://pve1.example.org:8006", cluster.url)
            for reading in (PREPARE, UP)
            for one in reading.texts()
        )
        answers = [
            ("Password of root@pam: ", cluster.password),
            ("(Node, Certificates)? [y/N] ", "y"),
            ("Make all of it? [y/N] ", "y"),
        ]
        code, shown = at_a_terminal(["bash", "-ec", f"{path} {prepare}"], answers, nobody)
        assert code == 0, shown
        state = home / ".local" / "state" / "micronova"
        line = f"{path} exec {up} --port 0"
        words = [f"{name}={value}" for name, value in nobody.items()]
        with embedded_cloud(state, argv=["env", *words, "bash", "-c", line]) as cloud:
            environment = cloud.environment("micronova-demo") | {
                "OS_CLIENT_CONFIG_FILE": f"{state}/clouds.yaml"
            }
            [login] = LOGIN.texts()
            assert "OS_CLIENT_CONFIG_FILE=~/.local/state/micronova/clouds.yaml" in login
            assert f"OS_CLOUD={environment['OS_CLOUD']}\n" in login
            Player(desk, environment).play(Played(HOMELAB))
    desk.close()


def test_a_platform_team(three_nodes: EmbeddedCloud, tmp_path: Path) -> None:
    if PROMTOOL is None:
        pytest.skip("Prometheus is not installed on this machine")
    home = tmp_path / "home"
    home.mkdir()
    desk = Desk(home)
    (home / "clouds.yaml").write_text(with_anna(three_nodes))
    environment = three_nodes.environment("micronova-admin") | {
        "OS_CLIENT_CONFIG_FILE": str(home / "clouds.yaml")
    }
    text = (three_nodes.state_dir / "micronova.conf").read_text()
    [port] = re.findall(r"\[metrics\]\nport = (\d+)", text)
    values = {"127.0.0.1:8777": f"127.0.0.1:{port}"}
    player = Player(desk, environment, values, typed="of Anna and Ben")
    player.play(Played(TEAM))
    [scrapes] = SCRAPES.texts()
    (home / "etc" / "prometheus" / "prometheus.yaml").write_text(scrapes)
    desk.run(f"{PROMTOOL} check config etc/prometheus/prometheus.yaml", os.environ)
    desk.close()


def with_anna(cloud: EmbeddedCloud) -> str:
    """Return the clouds of a user, with the cloud that the page prints."""
    known = yaml.safe_load(cloud.clouds_yaml.read_text())
    [text] = ANNA.texts()
    [(name, one)] = yaml.safe_load(text)["clouds"].items()
    assert one["auth"]["auth_url"] == "https://cloud.example/identity/v3"
    one["auth"]["auth_url"] = cloud.auth_url
    known["clouds"][name] = one
    return str(yaml.safe_dump(known))
