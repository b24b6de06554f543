"""The embedded cloud answers for all its services on one port."""

from __future__ import annotations

import re

import requests

from tests.functional.cloud import EmbeddedCloud, eventually
from tests.functional.monitor.test_promtool import promtool

#: of each service, one metric that it alone has
OF_EACH = (
    'micronova_http_requests_total{action="",api="compute"',
    'micronova_http_requests_total{action="",api="placement"',
    'micronova_pool_threads{pool="build"}',
    'micronova_pool_threads{pool="compute-work"}',
    'micronova_loop_success_timestamp_seconds{loop="heartbeat nova-scheduler"}',
    "micronova_console_sessions",
    "micronova_record_read_timestamp_seconds",
)


def test_one_port_answers_for_all(three_nodes: EmbeddedCloud) -> None:
    text = (three_nodes.state_dir / "micronova.conf").read_text()
    port = int(re.findall(r"\[metrics\]\nport = (\d+)", text)[0])
    url = f"http://127.0.0.1:{port}"
    assert requests.get(f"{url}/healthz", timeout=60).text == "ok\n"
    eventually(lambda: requests.get(f"{url}/readyz", timeout=60).ok, 30)
    compute = three_nodes.connection().compute
    route = 'api="compute",method="GET",route="/v2.1/servers/{server_id}",status="404"'
    gone = "/servers/00000000-0000-4000-8000-000000000000"
    assert compute.get(gone).status_code == 404
    found = requests.get(f"{url}/metrics", timeout=60)
    for metric in (*OF_EACH, f'micronova_http_requests_total{{action="",{route}}}'):
        assert metric in found.text, metric
    assert gone not in found.text
    promtool("check", "metrics", text=found.content)
    # Nothing of it is on the public port.
    for path in ("metrics", "healthz", "readyz"):
        assert requests.get(f"{three_nodes.base_url}/{path}", timeout=60).status_code == 404
