"""A log as JSON: one object a line, with the request in it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
CODE = """
from oslo_config import cfg
from common import context, log
conf = cfg.ConfigOpts()
log.register(conf)
conf([], default_config_files=[])
conf.set_override("use_json", True)
conf.set_override("use_stderr", True)
log.setup(conf, "test")
context.internal("req-00000000-0000-0000-0000-000000000001").update_store()
log.logger("some.module").warning("Something %s.", "happened")
"""


def test_a_line_is_an_object_with_its_request() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CODE], cwd=ROOT, capture_output=True, text=True, check=True
    )
    found = json.loads(done.stderr.splitlines()[-1])
    assert (found["message"], found["levelname"]) == ("Something happened.", "WARNING")
    assert found["name"] == "micronova.some.module"
    assert found["context"]["request_id"] == "req-00000000-0000-0000-0000-000000000001"
