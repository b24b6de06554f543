"""Sentences about why a connection failed, from the causes below requests' exceptions."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator

#: OpenSSL's text for an answer that is no TLS: up to 3.1, later, and for a closed connection
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})
#: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_OTHER_NAME = frozenset({62, 64})
#: X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
_OUT_OF_DATE = frozenset({9, 10})


def tls_problem(name: str, error: BaseException) -> str:
    """Return one sentence about a failed TLS connection to ``name`` (host:port)."""
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate_problem(name, cause)
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            return f"{name} closes the connection when TLS begins: does it speak plain HTTP?"
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NO_TLS:
                return (
                    f"{name} does not speak TLS, perhaps plain HTTP: Proxmox VE's API is HTTPS "
                    "on port 8006. Name that address."
                )
            return f"{name}: TLS failed ({cause.reason or cause})."
    return f"{name}: TLS failed."


def connect_problem(error: BaseException) -> str:
    """Return a few words about a refused connection, or an unknown name."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "no such host"
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            return cause.strerror.lower()
    return "no connection"


def _certificate_problem(name: str, error: ssl.SSLCertVerificationError) -> str:
    if error.verify_code in _OTHER_NAME:
        host = name.rpartition(":")[0]
        return f"The certificate of {name} is made for another name than {host}: use its own name."
    if error.verify_code in _OUT_OF_DATE:
        return (
            f"The certificate of {name} is not valid now ({error.verify_message}): renew it with "
            "`pvecm updatecerts --force` on that node."
        )
    return (
        f"The certificate of {name} is not trusted ({error.verify_message}): copy "
        "/etc/pve/pve-root-ca.pem from a node and name it with --proxmox-ca, or ca_file."
    )


def _causes(error: BaseException) -> Iterator[BaseException]:
    """Yield an exception and all its causes, each once."""
    waiting, seen = [error], set()
    while waiting:
        one = waiting.pop(0)
        if id(one) in seen:
            continue
        seen.add(id(one))
        yield one
        inner = (*one.args, getattr(one, "reason", None), one.__cause__, one.__context__)
        waiting.extend(each for each in inner if isinstance(each, BaseException))
