"""What users read of an error."""

from __future__ import annotations

from keystoneauth1 import exceptions

from cli.errors import sentence


def test_a_status_is_said_once() -> None:
    said = "The request needs authentication. (HTTP 401)"
    error = exceptions.Unauthorized("The request needs authentication.", request_id="req-1")
    assert sentence(error) == f"{said} (Request-ID: req-1)"
