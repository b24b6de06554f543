"""What a cluster of Proxmox VE needs before it is used, for the command line."""

from __future__ import annotations

from compute.prepare import NEWEST as NEWEST  # noqa: PLC0414 - a part of this module
from compute.prepare import lines as lines  # noqa: PLC0414
