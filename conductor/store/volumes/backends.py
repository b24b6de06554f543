"""The storages that take disks, as the API reads them, too."""

from __future__ import annotations

from db.reads.volumes.backends import Backend, promised, read

__all__ = ["Backend", "promised", "read"]
