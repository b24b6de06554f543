"""Sentences about why a connection failed, from the causes below requests' exceptions."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Iterator
from dataclasses import dataclass

#: OpenSSL's text for an answer that is no TLS: up to 3.1, later, and for a closed connection
_NO_TLS = frozenset({"WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "HTTP_REQUEST"})
#: X509_V_ERR_HOSTNAME_MISMATCH and X509_V_ERR_IP_ADDRESS_MISMATCH
_OTHER_NAME = frozenset({62, 64})
#: shows why TLS failed
_LOOK = "journalctl -u pveproxy --since -10min"
#: X509_V_ERR_CERT_NOT_YET_VALID and X509_V_ERR_CERT_HAS_EXPIRED
_OUT_OF_DATE = frozenset({9, 10})


#: X509_V_ERR_*: no issuer, self-signed, and self-signed or no issuer in its chain
_UNKNOWN = frozenset({2, 18, 19, 20, 21})

#: makes a node's certificate again, and has the API use it
RENEW = "pvecm updatecerts --force && systemctl restart pveproxy"


@dataclass(frozen=True)
class TlsProblem:
    """Why a TLS connection failed."""

    text: str
    """One sentence."""
    line: str
    """What mends it: a command for root on that node, or an option after a `#`."""
    is_unknown_authority: bool = False
    """Whether the certificate is refused only because nobody who is known made it."""


def tls_problem(name: str, error: BaseException, cluster: str) -> TlsProblem:
    """Return why TLS failed to ``name`` (host:port), an endpoint of ``[proxmox:<cluster>]``."""
    address = f"# [proxmox:{cluster}] endpoints = https://<address of a node>:8006"
    for cause in _causes(error):
        if isinstance(cause, ssl.SSLCertVerificationError):
            return _certificate_problem(name, cause, cluster)
        if isinstance(cause, ssl.SSLEOFError | ssl.SSLZeroReturnError):
            text = f"{name} closes the connection when TLS begins: does it speak plain HTTP?"
            return TlsProblem(text, address)
        if isinstance(cause, ssl.SSLError):
            if cause.reason in _NO_TLS:
                text = f"{name} does not speak TLS, perhaps plain HTTP: Proxmox VE's API is HTTPS "
                return TlsProblem(f"{text}on port 8006. Name that address.", address)
            return TlsProblem(f"{name}: TLS failed ({cause.reason or cause}).", _LOOK)
    return TlsProblem(f"{name}: TLS failed.", _LOOK)


def connect_problem(error: BaseException) -> str:
    """Return a few words about a refused connection, or an unknown name."""
    for cause in _causes(error):
        if isinstance(cause, socket.gaierror):
            return "no such host"
        if isinstance(cause, OSError) and cause.errno is not None and cause.strerror:
            return cause.strerror.lower()
    return "no connection"


def _certificate_problem(
    name: str, error: ssl.SSLCertVerificationError, cluster: str
) -> TlsProblem:
    if error.verify_code in _OTHER_NAME:
        host = name.rpartition(":")[0]
        text = f"The certificate of {name} is made for another name than {host}: use its own name."
        return TlsProblem(text, f"# [proxmox:{cluster}] endpoints = https://<that name>:8006")
    if error.verify_code in _OUT_OF_DATE:
        text = (
            f"The certificate of {name} is not valid now ({error.verify_message}): renew it with "
        )
        return TlsProblem(f"{text}`pvecm updatecerts --force` on that node.", RENEW)
    text = (
        f"The certificate of {name} is not trusted ({error.verify_message}): copy "
        "/etc/pve/pve-root-ca.pem from a node and name it with --proxmox-ca, or ca_file."
    )
    line = f"# [proxmox:{cluster}] ca_file = <its copy here>"
    return TlsProblem(text, line, is_unknown_authority=error.verify_code in _UNKNOWN)


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
