"""What people read of a connection that didn't come about."""

from __future__ import annotations

import errno
import os
import socket
import ssl

import pytest
import requests
import urllib3

from compute.hypervisor.proxmox.api import handshake


def a_certificate_error(code: int, message: str) -> ssl.SSLCertVerificationError:
    error = ssl.SSLCertVerificationError(1, message)
    error.verify_code, error.verify_message = code, message
    return error


def as_requests_raises(error: Exception) -> requests.exceptions.SSLError:
    inner = urllib3.exceptions.SSLError(error)
    pool = urllib3.HTTPSConnectionPool("pve1", 8006)
    return requests.exceptions.SSLError(urllib3.exceptions.MaxRetryError(pool, "/", inner))


def a_tls_error(reason: str) -> ssl.SSLError:
    error = ssl.SSLError(1, f"[SSL: {reason}]")
    error.reason = reason
    return error


CA = "# [proxmox:c1] ca_file = <its copy here>"
NAME = "# [proxmox:c1] endpoints = https://<that name>:8006"
ADDRESS = "# [proxmox:c1] endpoints = https://<address of a node>:8006"
LOOK = "journalctl -u pveproxy --since -10min"


@pytest.mark.parametrize(
    ("error", "words", "line"),
    [
        (a_certificate_error(19, "self-signed certificate"), "is not trusted (self-signed", CA),
        (a_certificate_error(62, "Hostname mismatch"), "made for another name than pve1:", NAME),
        (a_certificate_error(64, "IP address mismatch"), "made for another name than pve1:", NAME),
        (
            a_certificate_error(10, "certificate has expired"),
            "pvecm updatecerts --force",
            handshake.RENEW,
        ),
        (a_tls_error("WRONG_VERSION_NUMBER"), "pve1:8006 does not speak TLS", ADDRESS),
        (a_tls_error("RECORD_LAYER_FAILURE"), "pve1:8006 does not speak TLS", ADDRESS),
        (a_tls_error("NO_SHARED_CIPHER"), "TLS failed (NO_SHARED_CIPHER)", LOOK),
        (ssl.SSLEOFError(8, "EOF occurred"), "does it speak plain HTTP?", ADDRESS),
    ],
)
def test_tls(error: Exception, words: str, line: str) -> None:
    """Only what a certificate that is out of date needs is a new certificate."""
    said = handshake.tls_problem("pve1:8006", as_requests_raises(error), "c1")
    assert words in said.text
    assert ("trusted" in said.text) == ("trusted" in words)
    assert "\n" not in said.text + said.line
    assert said.line == line


@pytest.mark.parametrize(
    ("error", "words"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"), "connection refused"),
        (OSError(errno.EHOSTUNREACH, os.strerror(errno.EHOSTUNREACH)), "no route to host"),
        (socket.gaierror(socket.EAI_NONAME, "Name or service not known"), "no such host"),
    ],
)
def test_no_connection(error: OSError, words: str) -> None:
    refused = urllib3.exceptions.NewConnectionError(None, "Failed")  # type: ignore[arg-type]
    refused.__cause__ = error
    raised = requests.exceptions.ConnectionError(refused)
    assert handshake.connect_problem(raised) == words


def test_nothing_is_known() -> None:
    assert handshake.connect_problem(requests.exceptions.ConnectionError()) == "no connection"
    said = handshake.tls_problem("h:1", requests.exceptions.SSLError(), "c1")
    assert said.text == "h:1: TLS failed."
