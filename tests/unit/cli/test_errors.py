"""What users read of an error."""

from __future__ import annotations

from pathlib import Path

import pytest
from keystoneauth1 import exceptions

from cli.errors import sentence


def test_a_status_is_said_once() -> None:
    said = "The request needs authentication. (HTTP 401)"
    error = exceptions.Unauthorized("The request needs authentication.", request_id="req-1")
    assert sentence(error) == f"{said} (Request-ID: req-1)"


def test_a_refusal_names_no_rule_but_who_may(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rule = "os_compute_api:os-services:list"
    error = exceptions.Forbidden(f"Policy doesn't allow {rule} to be performed.")
    clouds = tmp_path / "clouds.yaml"
    monkeypatch.setenv("OS_CLIENT_CONFIG_FILE", str(clouds))
    clouds.write_text("clouds: {mine: {auth: {auth_url: 'http://x'}}}")
    said = "This user may not do that; an administrator may"
    assert sentence(error) == f"{said} (HTTP 403)"
    clouds.write_text("clouds: {micronova: {auth: {auth_url: 'http://x'}}}")
    assert sentence(error) == f"{said}: --os-cloud micronova (HTTP 403)"
    of_data = exceptions.Forbidden("Quota exceeded for cores.")
    assert sentence(of_data) == "Quota exceeded for cores. (HTTP 403)"
