"""The serial line of a simulated VM behind `termproxy`: a boot log, then it echoes."""

from __future__ import annotations

from simulator.console.websocket import WebSocket
from simulator.digits import is_digits

BOOT_LOG = (
    "[    0.000000] Linux version 6.1.0-simulated (simulator@pve)",
    "[    0.000000] Command line: root=/dev/sda1 console=ttyS0",
    "[    0.412345] sd 2:0:0:0: [sda] Attached SCSI disk",
    "[    2.104211] cloud-init[312]: Cloud-init v. 22.4.2 running 'init-local'. Up 2.09 seconds.",
    "[    3.018775] cloud-init[345]: Cloud-init v. 22.4.2 running 'init'. Up 3.01 seconds.",
    "[    3.020114] cloud-init[345]: ci-info: | eth0 | True |",
    "[    5.234567] systemd[1]: Reached target Multi-User System.",
    "-----BEGIN SSH HOST KEY KEYS-----",
    "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIsimulated root@{name}",
    "-----END SSH HOST KEY KEYS-----",
    "[    6.402913] cloud-init[402]: Cloud-init v. 22.4.2 finished. Up 6.40 seconds.",
)
"""What a cloud image's first start says: the kernel, systemd and cloud-init."""
_INPUT, _RESIZE = b"0", b"1"
_LONGEST = 65536


def refuse(visitor: WebSocket, interface: str) -> None:
    """Print why the VM's terminal can't be had, as `qm terminal` does."""
    visitor.send(f"serial interface '{interface}' is not configured\r\n".encode())


def serve(visitor: WebSocket, interface: str, name: str) -> None:
    """Print the boot log and echo what is typed until the visitor leaves (raises Gone)."""
    visitor.send(f"starting serial terminal on interface {interface}\r\n".encode())
    log = "".join(f"{line}\r\n" for line in BOOT_LOG).replace("{name}", name)
    visitor.send(log.encode())
    visitor.send(f"\r\n{name} login: ".encode())
    while True:
        typed = _typed(visitor)
        if typed:
            visitor.send(typed.replace(b"\r", b"\r\n"))


def _typed(visitor: WebSocket) -> bytes:
    """Return the input of one message: `0:LENGTH:BYTES`, `1:COLUMNS:ROWS:`, or `2`."""
    kind = visitor.exactly(1)
    if kind == _INPUT:
        visitor.exactly(1)
        return visitor.exactly(min(_number(visitor), _LONGEST))
    if kind == _RESIZE:
        visitor.exactly(1)
        _number(visitor)
        _number(visitor)
    return b""


def _number(visitor: WebSocket) -> int:
    digits = b""
    while (character := visitor.exactly(1)) != b":" and len(digits) < 8:
        digits += character
    return int(digits) if is_digits(digits) else 0
