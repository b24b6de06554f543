"""What processes without a database import to know the time."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("service", ["scheduler.service", "compute.worker.service"])
def test_a_service_without_a_database_has_no_database_s_code_in_memory(service: str) -> None:
    text = (
        "import common.threads, sys\n"
        f"import launcher.run, launcher.clocks, common.rpc.events, {service}\n"
        "print([one for one in ('sqlalchemy', 'psycopg', 'alembic') if one in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
