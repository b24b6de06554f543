"""The screen of a simulated VM: a VNC server (RFB 3.8) with VNC authentication and a picture."""

from __future__ import annotations

import hmac
import secrets
import struct

from cryptography.hazmat.decrepit.ciphers.algorithms import TripleDES
from cryptography.hazmat.primitives.ciphers import Cipher, modes

from simulator.console.websocket import WebSocket

VERSION = b"RFB 003.008\n"
WIDTH, HEIGHT = 640, 400
#: the colours of the picture's eight bars, as red, green and blue; a key shifts them by one bar
BARS = (
    *((255, 255, 255), (255, 255, 0), (0, 255, 255), (0, 255, 0)),
    *((255, 0, 255), (255, 0, 0), (0, 0, 255), (16, 16, 16)),
)
_VNC_AUTHENTICATION = 2
#: bits per pixel, depth, big endian, true colour, three maxima, three shifts
_FORMAT = (32, 24, 0, 1, 255, 255, 255, 16, 8, 0)
_FORMAT_STRUCT = ">BBBBHHHBBB3x"
_RAW = 0
#: client message → how many bytes follow its type, where that is fixed
_SIZES = {0: 19, 3: 9, 4: 7, 5: 5}
_SET_FORMAT, _SET_ENCODINGS, _REQUEST, _KEY, _CUT_TEXT, _QEMU = 0, 2, 3, 4, 6, 255
#: QEMU's keys by their places: offered by a client as an encoding, granted by an empty rectangle
_EXTENDED_KEYS = -258
#: down or up, keysym, scan code
_EXTENDED_KEY = struct.Struct(">xHII")


def serve(visitor: WebSocket, password: str, name: str) -> None:
    """Serve a visitor until it leaves (raises Gone), or fails to authenticate."""
    visitor.send(VERSION)
    visitor.exactly(len(VERSION))
    visitor.send(bytes([1, _VNC_AUTHENTICATION]))
    if visitor.exactly(1) != bytes([_VNC_AUTHENTICATION]):
        return
    challenge = secrets.token_bytes(16)
    visitor.send(challenge)
    if not hmac.compare_digest(visitor.exactly(16), response(password, challenge)):
        reason = b"Authentication failed"
        visitor.send(struct.pack(">II", 1, len(reason)) + reason)
        return
    visitor.send(struct.pack(">I", 0))
    visitor.exactly(1)
    visitor.send(
        struct.pack(">HH", WIDTH, HEIGHT)
        + struct.pack(_FORMAT_STRUCT, *_FORMAT)
        + struct.pack(">I", len(name))
        + name.encode()
    )
    _Screen(visitor).run()


def response(password: str, challenge: bytes) -> bytes:
    """Return the answer to a challenge: DES with the password, each byte's bits reversed."""
    key = password.encode()[:8].ljust(8, b"\0")
    reversed_key = bytes(int(f"{byte:08b}"[::-1], 2) for byte in key)
    # Three times the same key is plain DES.
    cipher = Cipher(TripleDES(reversed_key * 3), modes.ECB())  # noqa: S305 - VNC's own
    return cipher.encryptor().update(challenge)


class _Screen:
    """The picture, and who looks at it."""

    def __init__(self, visitor: WebSocket) -> None:
        self._visitor = visitor
        self._format = _FORMAT
        self._turned = 0
        self._waits = False

    def run(self) -> None:
        while True:
            kind = self._visitor.exactly(1)[0]
            if kind == _SET_ENCODINGS:
                self._visitor.exactly(1)
                count = int.from_bytes(self._visitor.exactly(2), "big")
                self._grant(struct.unpack(f">{count}i", self._visitor.exactly(4 * count)))
            elif kind == _QEMU:
                self._on_extended_key(*_EXTENDED_KEY.unpack(self._visitor.exactly(11)))
            elif kind == _CUT_TEXT:
                self._visitor.exactly(3)
                count = int.from_bytes(self._visitor.exactly(4), "big", signed=True)
                self._visitor.exactly(abs(count))
            elif kind in _SIZES:
                self._on_message(kind, self._visitor.exactly(_SIZES[kind]))
            else:
                return

    def _on_message(self, kind: int, content: bytes) -> None:
        if kind == _SET_FORMAT:
            self._format = struct.unpack(_FORMAT_STRUCT, content[3:])
        elif kind == _REQUEST:
            self._waits = bool(content[0])
            if not self._waits:
                self._show()
        elif kind == _KEY and content[0]:
            self._on_key()

    def _on_key(self) -> None:
        self._turned += 1
        if self._waits:
            self._waits = False
            self._show()

    def _on_extended_key(self, down: int, _keysym: int, _scan_code: int) -> None:
        if down:
            self._on_key()

    def _grant(self, encodings: tuple[int, ...]) -> None:
        """Grant extended keys to a client that knows them."""
        if _EXTENDED_KEYS in encodings:
            size = (0, 0, WIDTH, HEIGHT, _EXTENDED_KEYS)
            self._visitor.send(struct.pack(">BxHHHHHi", 0, 1, *size))

    def _show(self) -> None:
        """Send the whole picture."""
        width, big, shifts = self._format[0] // 8, self._format[2], self._format[7:]
        row = b""
        for bar in range(len(BARS)):
            colour = BARS[(bar + self._turned) % len(BARS)]
            pixel = sum(part << shift for part, shift in zip(colour, shifts, strict=True))
            row += pixel.to_bytes(width, "big" if big else "little") * (WIDTH // len(BARS))
        self._visitor.send(
            struct.pack(">BxHHHHHi", 0, 1, 0, 0, WIDTH, HEIGHT, _RAW) + row * HEIGHT
        )
