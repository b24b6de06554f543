"""docs/regions.md, followed: two clouds, one Keystone, clients that choose among them."""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import socket
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import openstack.connection
import pytest

from tests.functional import programs
from tests.functional.cloud import EmbeddedCloud, command, embedded_cloud, run_to_end
from tests.functional.dashboard.browser import Browser
from tests.pages import block

PAGE = "docs/regions.md"
REGIONS = ("north", "south")
OPTIONS: dict[str, Any] = {"nodes": 1, "speed": 100}


def printed(what: str, home: Path) -> str:
    """Return a block of the page, in a home of the test's."""
    return block(PAGE, "", what).replace("~/", f"{home}/").replace("\\\n", " ")


def shell(script: str, environment: Mapping[str, str]) -> None:
    """Run a script; its `openstack` commands are run in the same order without a new process."""
    noted = "openstack() { printf '%q ' \"$@\"; echo; }\n"
    done = subprocess.run(
        ["bash", "-euc", noted + script],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=True,
    )
    for line in done.stdout.splitlines():
        ended = programs.run("openstack", shlex.split(line), environment)
        assert ended.returncode == 0, (line, ended.stderr)


def up(text: str, *, keystone: str = "") -> list[str]:
    """Return the command line of a printed `micronova up`, for a small cloud on free ports."""
    words = shlex.split(text.replace("http://127.0.0.1:8775", keystone))
    assert words[:2] == ["micronova", "up"]
    given = dict(zip(words[2::2], words[3::2], strict=True))
    given["--port"] = "0"
    made = command(Path(given.pop("--state-dir")), **OPTIONS)
    return [*made, *(word for pair in given.items() for word in pair)]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SimpleNamespace]:
    home = tmp_path_factory.mktemp("regions")
    with ExitStack() as stack:
        argv = up(printed("--region north", home))
        north = stack.enter_context(embedded_cloud(home / "north", argv=argv))
        shell(printed("openstack user create", home), north.environment("micronova-admin"))
        keystone = north.auth_url.removesuffix("/v3")
        joins = up(printed("--region south", home), keystone=keystone)
        # What it has can't be asked by its own clouds.yaml: it has none.
        south = stack.enter_context(embedded_cloud(home / "south", argv=joins, audited=False))
        script = printed("sed -i", home)
        subprocess.run(["bash", "-euc", script], check=True)
        yield SimpleNamespace(home=home, north=north, south=south, keystone=keystone, joins=joins)


def connection(world: SimpleNamespace, region: str, name: str = "micronova-demo") -> Any:
    config = openstack.config.OpenStackConfig(
        config_files=[str(world.north.clouds_yaml)], load_envvars=False
    ).get_one(name, region_name=region)
    return openstack.connection.Connection(config=config)


def boot(world: SimpleNamespace, region: str, name: str) -> Any:
    cloud = connection(world, region)
    image = next(one for one in cloud.image.images() if "cirros" in one.name)
    made = cloud.compute.create_server(
        name=name, image_id=image.id, flavor_id="c1", networks="auto"
    )
    return cloud.compute.wait_for_server(made, wait=120)


def run(world: SimpleNamespace, program: str, *words: str, who: str = "micronova-demo") -> Any:
    return programs.run(program, words, world.north.environment(who))


@pytest.fixture(scope="module")
def servers(world: SimpleNamespace) -> Iterator[dict[str, Any]]:
    made = {region: boot(world, region, f"web-{region}") for region in REGIONS}
    yield made
    for region, one in made.items():
        compute = connection(world, region).compute
        compute.delete_server(one)
        compute.wait_for_delete(one, wait=120)


def test_every_client_chooses_a_region(world: SimpleNamespace, servers: dict[str, Any]) -> None:
    for region, line in zip(
        REGIONS, printed("--os-region-name north", world.home).splitlines(), strict=True
    ):
        words = shlex.split(line)
        done = run(world, words[0], *words[1:], "-f", "value", "-c", "Name")
        assert (done.returncode, done.stdout.split()) == (0, [f"web-{region}"]), done.stderr
        for type_ in ("image", "network", "volume", "flavor", "keypair"):
            done = run(world, "openstack", "--os-region-name", region, type_, "list")
            assert done.returncode == 0, done.stderr
        listed = connection(world, region).compute.servers()
        assert [one.id for one in listed] == [servers[region].id]
    # Keystone is found in every region, and is the same.
    projects = [
        {one.id for one in connection(world, region, "micronova-admin").identity.projects()}
        for region in REGIONS
    ]
    assert projects[0] == projects[1]


def test_a_region_is_the_whole_of_its_catalog(world: SimpleNamespace) -> None:
    admin = connection(world, "north", "micronova-admin").identity
    found: dict[str, set[str]] = {}
    for one in admin.endpoints():
        found.setdefault(one.region_id, set()).add(one.url)
    for region in REGIONS:
        cloud: EmbeddedCloud = getattr(world, region)
        ours = {url for url in found[region] if url.startswith(cloud.base_url)}
        assert found[region] - ours == {world.keystone}
        assert f"{cloud.base_url}/compute/v2.1" in ours
        assert len(ours) == 6  # block-storage and volumev3 are one
    assert not (world.south.state_dir / "clouds.yaml").exists()


def test_another_clouds_region_is_left_as_it_is(world: SimpleNamespace, tmp_path: Path) -> None:
    options = {
        **OPTIONS,
        "driver": "tests.fixtures.null.driver:hypervisors",
        "keystone": world.keystone,
        "keystone_user": "micronova-south",
        "keystone_password_file": world.home / "south.password",
    }
    done = run_to_end(tmp_path / "third", region="north", **options)
    assert done.returncode == 1
    assert "Region north of" in done.stderr + done.stdout
    assert "is another cloud's" in done.stderr + done.stdout
    test_a_region_is_the_whole_of_its_catalog(world)


def test_the_catalog_of_separate_services(world: SimpleNamespace) -> None:
    """The page's loop makes a region that clients of all types find."""
    environment = world.north.environment("micronova-admin")
    shell(printed("region create west", world.home), environment)
    admin = connection(world, "north", "micronova-admin").identity
    made = [one for one in admin.endpoints() if one.region_id == "west"]
    try:
        south = [one for one in admin.endpoints() if one.region_id == "south"]
        assert {(one.service_id, one.interface) for one in made} == {
            (one.service_id, one.interface) for one in south
        }
        paths = {re.sub(r"^https://west.example", "", one.url) for one in made}
        assert paths - {"https://keystone.example"} == {
            one.url.removeprefix(world.south.base_url) for one in south
        } - {world.keystone}
    finally:
        for one in made:
            admin.delete_endpoint(one)
        admin.delete_region("west")


# --- micronova --all-regions


def all_regions(world: SimpleNamespace, *words: str, who: str = "micronova-demo") -> Any:
    return run(world, "micronova", "--all-regions", *words, who=who)


def rows(done: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("filters", [(), ("--name", "web"), ("--ip", "10.20")])
def test_servers_of_all_regions(
    world: SimpleNamespace, servers: dict[str, Any], filters: tuple[str, ...]
) -> None:
    done = all_regions(world, "server", "list", *filters, "-f", "json")
    assert (done.returncode, done.stderr) == (0, "")
    assert {row["Region"]: row["ID"] for row in rows(done)} == {
        region: one.id for region, one in servers.items()
    }


def test_a_server_is_found_by_name_or_id(world: SimpleNamespace, servers: dict[str, Any]) -> None:
    for wanted in ("web-south", servers["south"].id):
        done = all_regions(world, "server", "show", wanted, "-f", "json")
        shown = json.loads(done.stdout)
        assert (done.returncode, shown["region"]) == (0, "south"), done.stderr
        assert shown["id"] == servers["south"].id
        story = all_regions(world, "explain", wanted)
        assert story.returncode == 0, story.stderr
        assert "Region south" in story.stderr and "create  done" in story.stdout
    lost = all_regions(world, "server", "show", "no-such")
    assert (lost.returncode, lost.stdout) == (1, "")
    assert "north: No server named 'no-such'." in lost.stderr


@pytest.mark.parametrize(
    "words",
    [
        ("node", "list"),
        ("queue", "list"),
        ("capacity", "--flavor", "c1"),
        ("schedule", "--flavor", "c1", "--image", "cirros"),
        ("hypervisor", "list"),
        ("image", "list"),
        ("network", "list"),
        ("compute", "service", "list"),
    ],
)
def test_what_operators_list(world: SimpleNamespace, words: tuple[str, ...]) -> None:
    done = all_regions(world, *words, "-f", "json", who="micronova-admin")
    assert done.returncode == 0, done.stderr
    assert {row["Region"] for row in rows(done)} == set(REGIONS)


@contextlib.contextmanager
def region_that_is_down(world: SimpleNamespace) -> Iterator[socket.socket]:
    """Have a region in the catalog whose API accepts connections and is silent.

    Closing the socket makes it refuse them.
    """
    admin = connection(world, "north", "micronova-admin").identity
    compute = next(one for one in admin.services() if one.type == "compute")
    admin.create_region(id="down")
    listener = socket.create_server(("127.0.0.1", 0))
    made = admin.create_endpoint(
        service_id=compute.id,
        interface="public",
        region_id="down",
        url=f"http://127.0.0.1:{listener.getsockname()[1]}/compute/v2.1",
    )
    try:
        yield listener
    finally:
        listener.close()
        admin.delete_endpoint(made)
        admin.delete_region("down")


def test_a_region_that_is_down_costs_its_own_rows(
    world: SimpleNamespace, servers: dict[str, Any]
) -> None:
    with region_that_is_down(world) as listener:
        quick = ("--all-regions", "--region-seconds", "8")
        done = run(world, "micronova", *quick, "server", "list", "-f", "json")
        assert done.returncode == 3
        assert {row["Region"] for row in rows(done)} == set(REGIONS)
        assert done.stderr.startswith("down: ")
        listener.close()
        done = all_regions(world, "server", "list", "-f", "json")
        assert (done.returncode, len(rows(done))) == (3, 2)
        assert "down: Unable to establish connection" in done.stderr


def test_the_dashboard_lists_the_servers_of_all_regions(
    world: SimpleNamespace, servers: dict[str, Any]
) -> None:
    browser = Browser(world.north)
    browser.log_in("member")
    assert "/dashboard/servers/regions" in browser.get("/servers").links
    shown = browser.get("/servers/regions")
    assert (browser.status, browser.calls) == (200, 2)
    assert all(f"web-{region}" in shown.text for region in REGIONS)
    # others' pages are in the dashboards of their regions
    assert re.findall(r"<a [^>]+>(web-[a-z]+)</a>", browser.page.text) == ["web-north"]
    assert "The page of a server is in the dashboard of its region." in shown.text
    with region_that_is_down(world) as listener:
        listener.close()
        browser = Browser(world.north)
        browser.log_in("member")
        shown = browser.get("/servers/regions")
    assert browser.status == 200
    assert all(f"web-{region}" in shown.text for region in REGIONS)
    assert "Region down has no answer: The compute API can't be reached." in shown.text


def test_what_isnt_for_all_regions(world: SimpleNamespace) -> None:
    for words in (("server", "delete", "x"), ("project", "list"), ("audit",)):
        done = all_regions(world, *words)
        assert (done.returncode, done.stdout) == (2, "")
        assert "is no command for --all-regions" in done.stderr
    done = run(world, "micronova", "--all-regions", "--os-region-name", "north", "server", "list")
    assert done.returncode == 2


def test_quota_is_spread_over_regions(world: SimpleNamespace, servers: dict[str, Any]) -> None:
    project = connection(world, "north").current_project_id

    def cores() -> list[int]:
        clouds = [connection(world, region, "micronova-admin") for region in REGIONS]
        return [one.compute.get_quota_set(project).cores for one in clouds]

    before = cores()
    shown, done = (
        run(world, *shlex.split(line), who="micronova-admin")
        for line in printed("quota spread", world.home).splitlines()
    )
    assert shown.returncode == 0, shown.stderr
    assert "Nothing was done" in shown.stderr
    assert done.returncode == 0, done.stderr
    assert (sum(before), cores()) == (40, [20, 20])
    spread = ("quota", "spread", "demo", "--yes")
    less = run(world, "micronova", *spread, "--total", "cores=7", who="micronova-admin")
    assert (less.returncode, cores()) == (0, [4, 3]), less.stderr
    # Each region has a server of one core.
    over = run(world, "micronova", *spread, "--total", "cores=1", who="micronova-admin")
    assert (over.returncode, cores()) == (1, [4, 3])
    assert "2 are in use already" in over.stderr


def test_what_is_published(world: SimpleNamespace, tmp_path: Path) -> None:
    north, south = (connection(world, region) for region in REGIONS)
    key = north.compute.create_keypair(name="mine")
    file = tmp_path / "data"
    file.write_bytes(os.urandom(1 << 20))
    image = north.image.create_image(
        "mine", data=file.read_bytes(), disk_format="raw", container_format="bare"
    )
    commands = (("keypair", "publish", "mine"), ("image", "publish", "mine", "--file", str(file)))
    for result in ("published", "is there already"):
        for words in commands:
            done = run(world, "micronova", *words, "-f", "json")
            assert done.returncode == 0, done.stderr
            assert [(row["Region"], row["Result"]) for row in rows(done)] == [("south", result)]
    assert south.compute.get_keypair("mine").fingerprint == key.fingerprint
    copied, first = (one.image.get_image(image.id) for one in (south, north))
    assert (copied.name, copied.hash_value) == ("mine", first.hash_value)


def test_other_data_are_not_published(world: SimpleNamespace, tmp_path: Path) -> None:
    north, south = (connection(world, region) for region in REGIONS)
    file, other = tmp_path / "data", tmp_path / "other"
    for one in (file, other):
        one.write_bytes(os.urandom(1 << 20))
    image = north.image.create_image(
        "theirs", data=file.read_bytes(), disk_format="raw", container_format="bare"
    )
    publish = ("image", "publish", "theirs", "--to", "south", "--file")
    done = run(world, "micronova", *publish, str(other))
    assert done.returncode == 1
    assert "another SHA-512" in done.stderr
    assert south.image.get_image(image.id).status == "queued"
    done = run(world, "micronova", *publish, str(file), "-f", "json")
    assert [row["Result"] for row in rows(done)] == ["published"], done.stderr
