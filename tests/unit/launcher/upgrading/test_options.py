from __future__ import annotations

import pytest
from oslo_config import cfg

from launcher.upgrading.options import about

KNOWN = {
    "DEFAULT": {"debug": cfg.BoolOpt("debug")},
    "conductor": {
        "scan_seconds": cfg.IntOpt("scan_seconds", deprecated_name="scan-interval"),
        "workers": cfg.IntOpt(
            "workers", deprecated_opts=[cfg.DeprecatedOpt("conductor_workers", group="DEFAULT")]
        ),
        "greedy": cfg.BoolOpt(
            "greedy", deprecated_for_removal=True, deprecated_reason="Nobody is."
        ),
    },
}


@pytest.mark.parametrize(
    ("group", "option", "said"),
    [
        ("DEFAULT", "debug", None),
        ("conductor", "scan-seconds", None),
        (
            "conductor",
            "scan_interval",
            "is [conductor] scan_seconds now.",
        ),
        ("DEFAULT", "conductor_workers", "is [conductor] workers now."),
        ("conductor", "greedy", "[conductor] greedy will be removed. Nobody is."),
        ("conductor", "scan_secnods", "it has no effect. Is scan_seconds meant?"),
        ("conductors", "workers", "this release has no group [conductors]"),
    ],
)
def test_what_is_said_of_an_option(group: str, option: str, said: str | None) -> None:
    found = about(group, option, KNOWN)
    assert (found is None) == (said is None)
    assert (said or "") in (found or "")
