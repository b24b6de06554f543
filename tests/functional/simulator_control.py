"""Asks the control API of a cloud's simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import requests


def url_of(folder: Path) -> str:
    """The API of the first simulated cluster; ``folder``: the simulator's."""
    endpoints = json.loads((folder / "endpoints.json").read_text(encoding="utf-8"))
    return str(endpoints[0]["url"])


def control(folder: Path, method: str, door: str, /, **body: Any) -> Any:
    """Ask for something, e.g. ``control(folder, "POST", "faults", action=…)``."""
    answer = requests.request(
        method,
        f"{url_of(folder)}/_sim/{door}",
        json=body or None,
        verify=str(folder / "ca.pem"),
        timeout=30,
    )
    answer.raise_for_status()
    return answer.json()
