"""The APIs for a WSGI server: ``gunicorn micronova.wsgi:compute`` (placement, image, network).

The configuration file is ``/etc/micronova/micronova.conf``, or what ``MICRONOVA_CONFIG`` names.
``all`` serves every API below its name on one port: /compute, /placement, /image, /network.
"""

from __future__ import annotations

from typing import Any

import micronova  # noqa: F401  (puts the packages on the import path)

_NAMES = frozenset({"compute", "placement", "image", "network", "all"})


def __getattr__(name: str) -> Any:
    """Make the application when the WSGI server asks for it."""
    if name not in _NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from launcher.web import application

    return application(name)
