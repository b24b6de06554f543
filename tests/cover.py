"""Hold the branch coverage of the pure modules by their own tests: ``python -m tests.cover``.

Coverage nearly doubles the time of whatever runs under it, so the unit tier runs without, and this
beside it. The modules and the bound are in tox.ini.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

import coverage
import pytest

TESTS = (
    "tests/unit/common/resources/test_states.py",
    "tests/unit/compute/test_again.py",
    "tests/unit/compute/test_flows.py",
    "tests/unit/compute/test_plumbing.py",
    "tests/unit/conductor/audit/test_affinity.py",
    "tests/unit/conductor/audit/test_differences.py",
    "tests/unit/placement",
    "tests/unit/scheduler",
)


def main(arguments: Sequence[str]) -> int:
    """Run the tests and print what they leave out; return the exit code."""
    measured = coverage.Coverage(data_file=None, config_file="tox.ini")
    measured.start()
    failed = pytest.main([*TESTS, "-o", "cache_dir=.tox/cover", *arguments])
    measured.stop()
    if failed:
        return int(failed)
    total = measured.report()
    bound = float(measured.get_option("report:fail_under") or 0)  # type: ignore[arg-type]
    if total < bound:
        print(f"{total:.1f} % is less than {bound:.0f} %")
    return int(total < bound)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
