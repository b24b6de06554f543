"""`micronova db` and `micronova config`, as an operator runs them."""

from __future__ import annotations

import contextlib
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from common.process.child import ROOT
from tests.functional import programs

_MICRONOVA = (sys.executable, "-m", "micronova")


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    path = tmp_path / "micronova.conf"
    path.write_text(
        "[DEFAULT]\ntransport_url = micronova-local://x\n"
        f"[database]\nconnection = sqlite:///{tmp_path}/cloud.sqlite\n"
        f"[placement_database]\nconnection = sqlite:///{tmp_path}/placement.sqlite\n"
        "[placement]\nauth_type = password\npassword = hush\n"
    )
    return path


def micronova(*words: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return programs.run("micronova", words, os.environ | environment)


def test_databases_are_made_and_checked(config_file: Path) -> None:
    before = micronova("db", "check", "--config-file", str(config_file))
    assert before.returncode == 1
    assert "The cloud database is empty: run 'micronova db upgrade'." in before.stderr
    assert "The placement database is empty: run 'micronova db upgrade'." in before.stderr
    for _ in range(2):
        done = micronova("db", "upgrade", MICRONOVA_CONFIG=str(config_file))
        assert done.returncode == 0, done.stderr
    after = micronova("db", "check", "--config-file", str(config_file))
    assert after.returncode == 0, after.stderr
    assert after.stderr.count("is up to date.") == 2


@pytest.mark.parametrize("name", ["cloud", "placement"])
def test_a_database_of_a_newer_release_is_one_line(
    config_file: Path, tmp_path: Path, name: str
) -> None:
    assert micronova("db", "upgrade", "--config-file", str(config_file)).returncode == 0
    with contextlib.closing(sqlite3.connect(tmp_path / f"{name}.sqlite")) as database, database:
        database.execute("CREATE TABLE alembic_contracted (version_num VARCHAR(32))")
        database.execute("INSERT INTO alembic_contracted VALUES ('c9999')")
    done = micronova("db", "upgrade", "--config-file", str(config_file))
    assert done.returncode == 1
    last = done.stderr.splitlines()[-1]
    assert f"The {name} database was contracted by a newer release, to c9999" in last
    assert "Traceback" not in done.stderr


def test_a_missing_file_is_one_line() -> None:
    done = micronova("db", "check", "--config-file", "/no/such/file")
    assert done.returncode == 1
    assert done.stderr.splitlines() == ["There is no configuration file /no/such/file."]


def test_a_wrong_value_is_one_line(config_file: Path) -> None:
    config_file.write_text(config_file.read_text() + "[compute]\nthreads = many\n")
    done = micronova("config", "show", "--config-file", str(config_file))
    assert done.returncode == 1
    (wrong,) = done.stderr.splitlines()
    assert wrong.startswith("[compute] threads: ")
    assert wrong.endswith(f" (configuration: {config_file})")


def test_the_cloud_of_the_clients_configuration_is_preferred(
    config_file: Path, tmp_path: Path
) -> None:
    client = {"OS_CLIENT_CONFIG_FILE": str(config_file.parent / "clouds.yaml")}
    for command in (("config", "show"), ("db", "check"), ("doctor",)):
        done = micronova(*command, **client, XDG_STATE_HOME=str(tmp_path / "none"))
        assert done.stderr.splitlines()[0] == f"Configuration: {config_file}", command
    elsewhere = micronova("config", "show", **client, MICRONOVA_CONFIG="/no/such/file")
    assert elsewhere.stderr.splitlines() == ["There is no configuration file /no/such/file."]


def test_the_configuration_of_the_embedded_cloud_is_found(
    config_file: Path, tmp_path: Path
) -> None:
    default = tmp_path / "xdg" / "micronova"
    default.mkdir(parents=True)
    here = {"XDG_STATE_HOME": str(tmp_path / "xdg")}
    nothing = micronova("db", "check", **here)
    assert nothing.returncode == 1
    [line] = nothing.stderr.splitlines()
    assert f"neither /etc/micronova/micronova.conf nor {default}/micronova.conf" in line
    config_file.write_text(
        config_file.read_text() + "[embedded]\nbase_url = http://x\n"
        "[proxmox]\nclusters = sim1\n[proxmox:sim1]\nendpoints = https://pve1:8006\n"
    )
    config_file.rename(default / "micronova.conf")
    for words in ((), ("--state-dir", str(default))):
        upgraded = micronova("db", "upgrade", *words, **here)
        assert upgraded.returncode == 0, upgraded.stderr
        assert micronova("db", "check", *words, **here).returncode == 0
        shown = micronova("config", "show", *words, **here)
        assert "[proxmox:sim1]\nendpoints = https://pve1:8006\n" in shown.stdout
        assert "base_url = http://x" in shown.stdout
    both = micronova("config", "show", "--state-dir", "x", "--config-file", "y")
    assert both.returncode == 2


def test_the_configuration_is_shown_without_secrets(config_file: Path) -> None:
    done = micronova("config", "show", "--config-file", str(config_file))
    assert done.returncode == 0, done.stderr
    assert "transport_url = micronova-local://x" in done.stdout
    assert "password = ***" in done.stdout
    assert "hush" not in done.stdout
    assert "heartbeat_seconds" not in done.stdout
    everything = micronova("config", "show", "--all", "--config-file", str(config_file))
    assert "heartbeat_seconds = 10" in everything.stdout
    assert "hush" not in everything.stdout


def test_a_reader_role_is_a_matter_of_postgresql(config_file: Path) -> None:
    done = micronova("db", "upgrade", "--config-file", str(config_file), "--reader-role", "api")
    assert done.returncode == 1
    assert "PostgreSQL" in done.stderr.splitlines()[-1]


def test_a_service_ends_at_a_signal(config_file: Path) -> None:
    """The conductor starts without anybody else, and stops in order."""
    assert micronova("db", "upgrade", "--config-file", str(config_file)).returncode == 0
    config_file.write_text(
        config_file.read_text().replace(
            "password = hush",
            "auth_url = http://127.0.0.1:1/v3\nusername = u\npassword = hush\n",
        )
    )
    read, write = os.pipe()
    with subprocess.Popen(
        [*_MICRONOVA, "service", "conductor", "--config-file", str(config_file)],
        cwd=ROOT,
        env=os.environ | {"MICRONOVA_READY_FD": str(write)},
        pass_fds=(write,),
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        os.close(write)
        with os.fdopen(read) as messages:
            assert "ready" in messages.readline()
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    assert "Traceback" not in errors
