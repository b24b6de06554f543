"""Each block of every page is run, and each command of a sentence that is one as it stands."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.fixtures import root_shell
from tests.functional.pages import tutorials
from tests.functional.pages.played import Played
from tests.functional.pages.prepared import PREPARED, SECOND, TOGETHER, TRACE
from tests.functional.pages.readings import FIRST, READINGS
from tests.functional.pages.sentences import SENTENCES
from tests.functional.pages.services import SERVICES
from tests.pages import PAGES, ROOT, every_block, inline_commands, inline_node_commands
from tests.unit.docs.test_blocks import commands, is_whole, without_placeholders

# the plug-ins of openstack's clients warn as they are loaded
pytestmark = pytest.mark.filterwarnings("ignore")

#: played by test_troubleshoot.py, and by test_lost.py; their sentences name what their blocks run
PLAYED = [
    Played(
        "docs/troubleshoot.md",
        "## By symptom",
        ("micronova doctor", "micronova doctor --fix-lines", "micronova queue list"),
    ),
    Played("docs/lost-node.md"),
    Played("docs/lost-storage.md"),
    Played(
        "docs/restored-cluster.md",
        sentences=("micronova audit --long", "micronova orphan reap --yes"),
    ),
]
RUN = [FIRST, *READINGS, *SENTENCES, *PREPARED, *TOGETHER, *SECOND, TRACE, *SERVICES, *PLAYED]
RUN += [*tutorials.TUTORIALS, *tutorials.PLAYED]

ELSEWHERE = frozenset(
    {
        "docs/deploy.md",
        "docs/development/new-revision.md",
        "docs/existing-dashboards.md",
        "docs/heat.md",
        "docs/install.md",
        "docs/kubernetes.md",
        "docs/regions.md",
        "docs/tutorials/ansible.md",
        "docs/tutorials/terraform.md",
        "docs/upgrade.md",
    }
)
"""Pages whose blocks are run by tests of their own."""

EXCEPTIONS = {
    ("CONTRIBUTING.md", "make test"): (
        "they run all tests, this one too; README.md's `make test` is asked what it would run, "
        "and `.ci/run`, which holds every change, is the others"
    ),
    ("docs/operate.md", "micronova backup /srv/backup/monday"): (
        "tests/functional/cli/test_backup.py makes a backup and puts it back, which ends a cloud "
        "that other pages are run on; tests/functional/test_restored_record.py decides about it"
    ),
    **{
        ("docs/operate.md", text): "tests/functional/pages/test_point_in_time.py follows them"
        for text in ("archive_mode", "pg_basebackup", "recovery.signal", "recovery_target_time")
    },
    ("docs/least-privilege.md", "clients, browsers"): (
        "a drawing, whose ports tests/unit/docs/test_ports.py compares"
    ),
    ("docs/least-privilege.md", "table inet micronova"): (
        "an example, in which names stand for addresses of machines that tests don't have"
    ),
    ("docs/scheduler.md", "--hint micronova:wait=3600"): (
        "it waits for a full cloud to have room: tests/functional/test_waiting_for_room.py"
    ),
    ("docs/states.md", "stateDiagram-v2"): (
        "a picture made of common/resources/states.py; "
        "tests/unit/launcher/test_sample.py compares the page"
    ),
}
"""{(page, text of the block): why it isn't run, and what checks it instead}"""

LISTS = frozenset({"docs/api.md", "docs/cli.md", "docs/states.md"})
"""Pages that are generated: their commands are those of tables."""

NAMED = {
    "micronova capacity": "names the command, which needs options: --without is run",
    "micronova db contract --config-file /etc/micronova/owners.conf": (
        "tests/functional/test_printed_deployment.py, with that file in the folder of the machine"
    ),
    "micronova explain big": "tests/functional/test_waiting_for_room.py explains such a server",
    "micronova queue list --waiting": "as above, and tests/unit/cli/test_nouns.py",
    "micronova rebalance": "names the command, which needs --plan, --apply or another option",
    "micronova volume create|delete|set --size|revert": (
        "names four commands and their --wait; tests/functional/cli/test_live.py waits by them"
    ),
    "micronova proxmox prepare https://pve1.example.org:8006": (
        "tests/functional/cli/test_first_real_server.py runs README.md's line"
    ),
    "micronova quickstart": "tests/functional/test_installed.py runs the line of docs/install.md",
    "micronova quickstart --remove": "tests/functional/test_quickstart.py, and as above",
    "micronova restore": "tests/functional/test_restored_record.py plays the page's story by it",
    "micronova restore --apply": "as above",
    "micronova restore --from <folder> --apply": "tests/functional/cli/test_backup.py",
    "openstack quota set": "names the command, which needs a limit",
    "micronova up": "each cloud of these tests is started by it",
    "micronova up --demo": "README.md's `make demo` is this",
    "micronova up --proxmox …": "README.md's line is run",
    "micronova up --set conductor.reclaim_instance_interval=86400": (
        "tests/functional/cli/test_up.py starts clouds with --set, as prepared.py does"
    ),
    "micronova up --set tracing.endpoint=…": "prepared.py starts a cloud with it",
    **{
        f"micronova service {name}": "the unit's: tests/functional/test_printed_deployment.py"
        for name in ("compute", "conductor", "console", "scheduler")
    },
    "micronova service identity": "the unit's: tests/functional/test_quickstart.py",
}


def test_each_block_of_every_page_is_run() -> None:
    found = {block for block in every_block() if block.page not in ELSEWHERE}
    run = [block for reading in RUN for block in reading.blocks]
    excepted = [
        block
        for page, text in EXCEPTIONS
        for block in found
        if block.page == page and text in block.text and block not in run
    ]
    assert len(excepted) == len(EXCEPTIONS)
    assert {str(block) for block in found} == {str(block) for block in [*run, *excepted]}


def test_each_command_of_a_sentence_is_run() -> None:
    run = {(reading.page, text) for reading in RUN for text in reading.sentences}
    whole = {
        (name, text)
        for page in PAGES
        if (name := _name(page)) not in LISTS and not name.startswith("docs/decisions")
        for text in [*_whole(page), *_whole_of_nodes(page)]
        if text not in NAMED
    }
    assert whole == run


def _whole(page: Path) -> Iterator[str]:
    for text in inline_commands(page):
        if all(map(is_whole, commands(text))):
            yield text


def _whole_of_nodes(page: Path) -> Iterator[str]:
    for text in inline_node_commands(page):
        if root_shell.is_known(without_placeholders(text)):
            yield text


def _name(page: Path) -> str:
    return str(page.relative_to(ROOT))
