"""What ``micronova restore`` ends with."""

from __future__ import annotations

from typing import Any

import pytest

from cli.services.backup import exit_code


@pytest.mark.parametrize(
    ("report", "apply", "code"),
    [
        ({"unseen": [], "released": True}, True, 0),
        ({"unseen": [], "released": False}, False, 0),
        ({"unseen": [], "released": False}, True, 2),
        ({"unseen": ["No agent of cluster c1 answers."], "released": False}, True, 2),
        ({"unseen": ["No agent of cluster c1 answers."], "released": False}, False, 2),
    ],
)
def test_its_exit_code_says_whether_all_is_decided(
    report: dict[str, Any], apply: bool, code: int
) -> None:
    assert exit_code(report, apply) == code
