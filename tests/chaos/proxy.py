"""A TCP proxy between the services and their broker, which can be cut."""

from __future__ import annotations

import contextlib
import socket
import threading


class Proxy:
    """Listens on a port of its own and passes everything on to another one."""

    def __init__(self, to_port: int) -> None:
        self._to = ("127.0.0.1", to_port)
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=128)
        self.port = int(self._listener.getsockname()[1])
        self._ends: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._whole = threading.Event()
        self._whole.set()
        self._moves = threading.Event()
        self._moves.set()
        threading.Thread(target=self._accept, name="proxy", daemon=True).start()

    def cut(self) -> None:
        """Break every connection, and refuse new ones until it is mended."""
        self._whole.clear()
        with self._lock:
            _break(*self._ends)

    def freeze(self) -> None:
        """Accept connections and data, and pass nothing on until ``thaw``."""
        self._moves.clear()

    def thaw(self) -> None:
        """Pass on all that came, and what comes."""
        self._moves.set()

    def mend(self) -> None:
        """Let connections through again."""
        self._whole.set()

    def close(self) -> None:
        """Carry nothing any more."""
        self._listener.close()
        self.thaw()
        self.cut()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._listener.accept()
            except OSError:
                return
            self._moves.wait()
            far = self._far() if self._whole.is_set() else None
            if far is None:
                near.close()
                continue
            with self._lock:
                self._ends |= {near, far}
            threading.Thread(target=self._carry, args=(near, far), daemon=True).start()

    def _far(self) -> socket.socket | None:
        try:
            far = socket.create_connection(self._to, 10)
        except OSError:
            return None
        far.settimeout(None)
        return far

    def _carry(self, near: socket.socket, far: socket.socket) -> None:
        back = threading.Thread(target=self._pass, args=(far, near), daemon=True)
        back.start()
        self._pass(near, far)
        # Closed only when nobody reads any more: the number would be that of a new connection
        # while a thread is about to read from the old one, which so takes the bytes of the new.
        back.join()
        with self._lock:
            self._ends -= {near, far}
            near.close()
            far.close()

    def _pass(self, one: socket.socket, other: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := one.recv(65536):
                self._moves.wait()
                other.sendall(data)
        _break(one, other)


def _break(*ends: socket.socket) -> None:
    """Shut connections down: what reads or writes there ends."""
    for end in ends:
        with contextlib.suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)
