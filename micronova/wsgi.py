"""The APIs for a WSGI server: ``gunicorn micronova.wsgi:compute`` (placement, image, …).

The configuration file is ``/etc/micronova/micronova.conf``, or what ``MICRONOVA_CONFIG`` names.
``public`` serves /compute, /image, /network, /volume and /clustering on one port, ``all``
/placement too.
"""

from __future__ import annotations

from typing import Any

import micronova  # noqa: F401  (puts the packages on the import path)


def __getattr__(name: str) -> Any:
    """Make the application when the WSGI server asks for it."""
    if name.startswith("_"):  # the import system asks for its own
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from launcher.web import NAMES, application

    if name not in NAMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return application(name)
