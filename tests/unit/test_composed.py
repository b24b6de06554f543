"""The compose files: against the specification's own schema, and against what they start."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml

from cli.commands import COMMANDS
from common.metrics import config as metrics
from launcher import configuration
from release import composed
from tests.fixtures.deployment_page import BROKERS
from tests.pages import block

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "containers").glob("compose*.yaml"))
SERVICES = ROOT / "containers" / "compose.services.yaml"
#: https://github.com/compose-spec/compose-spec, schema/compose-spec.json at 170098ba (2026-06-23)
SCHEMA = json.loads((ROOT / "tests" / "fixtures" / "compose-spec.json").read_text())
VALIDATOR = jsonschema.Draft7Validator(SCHEMA)
_VARIABLE = re.compile(r"\$\{(\w+)(:[-?][^}]*)?\}")


def read(file: Path) -> Any:
    return yaml.safe_load(file.read_text(encoding="utf-8"))


READ = read(SERVICES)
OURS = {name: one for name, one in READ["services"].items() if "MICRONOVA" in one["image"]}


@pytest.mark.parametrize("file", FILES, ids=lambda one: one.name)
def test_the_schema_of_the_specification(file: Path) -> None:
    assert list(VALIDATOR.iter_errors(read(file))) == []


def test_the_schema_finds_faults() -> None:
    wrong = read(SERVICES)
    wrong["services"]["proxy"]["ports"] = "8774"
    wrong["services"]["mq1"]["restrat"] = "always"
    assert len(list(VALIDATOR.iter_errors(wrong))) == 2


def test_what_is_named_is_there() -> None:
    for name, one in READ["services"].items():
        assert {config["source"] for config in one.get("configs", ())} <= set(READ["configs"])
        volumes = {text.partition(":")[0] for text in one.get("volumes", ())}
        assert volumes <= set(READ["volumes"]), name
        assert set(one.get("depends_on", ())) <= set(READ["services"]), name
    used = {c["source"] for one in READ["services"].values() for c in one.get("configs", ())}
    assert used == set(READ["configs"])


def test_there_are_two_of_each_and_three_brokers() -> None:
    kinds = ("public", "placement", "conductor", "scheduler", "compute", "console", "dashboard")
    wanted = {f"{kind}-{number}" for kind in kinds for number in (1, 2)}
    assert wanted | {"mq1", "mq2", "mq3", "postgres", "identity"} <= set(READ["services"])
    # A service's name is its host's, which would be another one for each new container.
    assert {READ["services"][name]["hostname"] for name in wanted} == wanted


def haproxy_cfg() -> str:
    return str(READ["configs"]["haproxy.cfg"]["content"])


def test_the_proxy_is_that_of_two_machines() -> None:
    text = composed.PROXY.read_text(encoding="utf-8")
    assert haproxy_cfg().rstrip() == composed.proxy(text).rstrip(), "tox -e generate"
    ours, theirs = (composed.sections(one) for one in (haproxy_cfg(), text))
    lines = {line.split("#")[0].strip() for line in theirs["defaults"].splitlines()}
    lines.discard("")
    server = next(line for line in lines if line.startswith("default-server"))
    assert lines - {server} <= {line.strip() for line in ours["defaults"].splitlines()}
    assert f"{server} init-addr" in ours["defaults"]
    assert {"option httpchk GET /inservice", "http-check disable-on-404"} <= lines
    public = haproxy_cfg().partition("frontend public\n")[2].partition("frontend")[0]
    for rule in ("set-header Idempotency-Key", "wait-for-body", "disable-l7-retry"):
        [line] = [one for one in theirs["frontend"].splitlines() if rule in one]
        assert line in public
    # elsewhere nothing but reads is repeated
    frontends = haproxy_cfg().count("\nfrontend ") - 1
    assert haproxy_cfg().count("disable-l7-retry unless") == frontends


def test_the_proxy_asks_ports_that_answer_it() -> None:
    for name, port in re.findall(r"server (\S+) \S+ check port (\d+)", haproxy_cfg()):
        kind = name.rpartition("-")[0]
        assert int(port) == metrics.PORTS["api" if kind == "public" else kind]
        texts = [READ["configs"][one["source"]]["content"] for one in OURS[name]["configs"]]
        assert any("[metrics]\nhost = 0.0.0.0" in text for text in texts), name


def test_haproxy_reads_its_configuration(tmp_path: Path) -> None:
    program = shutil.which("haproxy", path=f"{os.environ['PATH']}:/usr/sbin")
    if program is None:
        pytest.skip("needs haproxy")
    text = haproxy_cfg()
    # no server of these has a name here
    (tmp_path / "haproxy.cfg").write_text(text)
    done = subprocess.run(
        [program, "-c", "-f", str(tmp_path / "haproxy.cfg")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


def test_who_asks_the_apis_is_written_to_a_volume() -> None:
    for name in ("public-1", "public-2", "placement-1", "placement-2"):
        texts = [READ["configs"][one["source"]]["content"] for one in OURS[name]["configs"]]
        assert sum("[audit_log]\nfile = /var/lib/micronova/" in text for text in texts) == 1
        [volume] = OURS[name]["volumes"]
        assert volume.endswith(":/var/lib/micronova")


def test_the_brokers_are_those_of_the_page() -> None:
    mine = set(READ["configs"]["rabbitmq.conf"]["content"].splitlines())
    assert set(filter(None, block(*BROKERS).splitlines())) <= mine


def test_every_service_has_a_health_check() -> None:
    for name, one in READ["services"].items():
        once = one.get("restart") in ("on-failure", "no")
        assert once or "test" in one.get("healthcheck", {}), name


def test_no_service_but_those_that_end_knows_an_owner() -> None:
    for name, one in READ["services"].items():
        sources = {config["source"] for config in one.get("configs", ())}
        texts = "".join(str(READ["configs"][source]["content"]) for source in sources)
        if name not in ("roles", "tables", "postgres"):
            assert "POSTGRES_PASSWORD" not in texts, name
            assert not re.search("//(micronova|placement):[^@]*@postgres", texts), name


def filled(text: str) -> str:
    """Put something in place of each variable, as compose does."""
    return _VARIABLE.sub(lambda found: (found[2] or "x")[2:] or found[1], text)


def files_of(service: Mapping[str, Any], folder: Path) -> list[str]:
    """Write a service's configuration; return the files that it reads."""
    for one in service.get("configs", ()):
        text = filled(READ["configs"][one["source"]]["content"])
        (folder / Path(one["target"]).name).write_text(text)
    named = service.get("environment", {}).get("MICRONOVA_CONFIG", "").split(":")
    words = service["command"]
    named += [words[n + 1] for n, word in enumerate(words) if word == "--config-file"]
    ours = [name for name in named if name.startswith("/etc/micronova/")]
    assert {Path(name).name for name in ours} <= {path.name for path in folder.iterdir()}
    return [str(folder / Path(name).name) for name in ours]


def started() -> Iterator[tuple[str, Mapping[str, Any]]]:
    for name, one in OURS.items():
        if "profiles" not in one:
            yield name, one


@pytest.mark.parametrize(("name", "service"), list(started()))
def test_each_service_reads_what_it_has(
    name: str, service: Mapping[str, Any], tmp_path: Path
) -> None:
    conf = configuration.load(files_of(service, tmp_path))
    configuration.register_logins(conf)
    for group in conf:  # a value that is no such option's fails here
        if isinstance(conf[group], type(conf.metrics)):
            list(conf[group].items())
    written = {
        (section, option)
        for path in tmp_path.iterdir()
        for section, option in options_in(path.read_text())
    }
    known = {
        (group, option)
        for group in conf
        if isinstance(conf[group], type(conf.metrics))
        for option in conf[group]
    }
    assert {one for one in written if one[0] != "DEFAULT"} <= known
    environment = service.get("environment", {})
    if name in ("tables", "identity"):
        return
    kind = name.rpartition("-")[0] or name
    port = metrics.PORTS["api" if kind == "public" else kind]
    assert environment["MICRONOVA_HEALTH"] == f"http://127.0.0.1:{port}/healthz"


def options_in(text: str) -> Iterator[tuple[str, str]]:
    section = "DEFAULT"
    for line in text.splitlines():
        if line.startswith("["):
            section = line.strip("[]")
        elif " = " in line and section != "DEFAULT":
            yield section, line.partition(" = ")[0]


def test_commands_are_ours() -> None:
    for one in OURS.values():
        first, *more = one.get("entrypoint", ["micronova"])
        if first == "gunicorn":
            assert re.fullmatch(
                r"micronova\.wsgi:(public|placement|dashboard)", one["command"][-1]
            )
            continue
        words = [*more, *one.get("command", ())]
        assert any(" ".join(words).startswith(f"{name} ") for name in COMMANDS), words


def test_the_page_makes_every_secret(tmp_path: Path) -> None:
    found = _VARIABLE.finditer(SERVICES.read_text())
    needed = {one[1] for one in found if (one[2] or "").startswith(":?")}
    line = block("docs/install.md", "", "> .env").splitlines()[0]
    done = subprocess.run(["bash", "-ec", line], cwd=tmp_path, check=False)
    assert done.returncode == 0
    made = dict(one.split("=") for one in (tmp_path / ".env").read_text().splitlines())
    assert set(made) == needed
    assert all(re.fullmatch("[0-9a-f]{48}", secret) for secret in made.values())
    assert len(set(made.values())) == len(made)
