"""Generated files are what the code would generate now."""

from __future__ import annotations

from pathlib import Path

import pytest

from common import config, rpc
from launcher import sample

ROOT = Path(__file__).resolve().parents[3]


def sections(text: str) -> dict[str, str]:
    """Return {group: its text} of a sample configuration."""
    found = {}
    for part in text.split("\n\n\n[")[1:]:
        name, _, body = part.partition("]")
        found[name] = body.strip()
    return found


def test_the_configuration_is_current() -> None:
    there = sections((ROOT / "etc/micronova.conf.sample").read_text(encoding="utf-8"))
    wanted = sections(sample.config())
    assert set(there) == set(wanted), "run tox -e generate"
    for group in set(wanted) - sample.LIBRARIES:
        assert there[group] == wanted[group], f"[{group}]: run tox -e generate"


@pytest.mark.parametrize("text", ["made now", "in the tree"])
def test_defaults_are_those_that_hold(text: str) -> None:
    """The message bus's library has others."""
    there = (ROOT / "etc/micronova.conf.sample").read_text(encoding="utf-8")
    printed = sections(sample.config() if text == "made now" else there)
    conf = config.load([rpc.register])
    lines = printed["oslo_messaging_rabbit"].splitlines()
    for name in (*rpc._RABBIT_DEFAULTS, "ssl_ca_file"):
        held = conf.oslo_messaging_rabbit[name]
        wanted = str(held).lower() if isinstance(held, bool) else held
        assert f"#{name} = {wanted}" in lines
    assert conf.oslo_messaging_rabbit.heartbeat_timeout_threshold == 15
    assert conf.oslo_messaging_rabbit.rabbit_qos_prefetch_count == conf.rpc.rpc_workers


@pytest.mark.parametrize("kind", ["policy", "states"])
def test_others_are_current(kind: str) -> None:
    make, path = sample.KINDS[kind]
    assert (ROOT / path).read_text(encoding="utf-8") == make(), f"run tox -e gen{kind}"


def test_every_option_of_ours_has_a_help_text() -> None:
    for group, options in sample.options().items():
        if group not in sample.LIBRARIES:
            assert [name for name, option in options.items() if not option.help] == [], group


def test_the_sample_names_no_machine() -> None:
    assert "/home/" not in sample.config()
    assert "/root" not in sample.config()
