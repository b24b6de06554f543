"""Whether new ports are filtered by their security groups, as the option and the clusters say."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Generic, TypeVar

from oslo_config import cfg

from common.log import logger
from common.resources.networks import ON

LOG = logger(__name__)

#: for how long the answer of the clusters is believed
SECONDS = 5.0
#: the same while no agent has reported, which it does soon after the start
SOON_SECONDS = 0.5

C = TypeVar("C")


class Filtering(Generic[C]):
    """Knows the answer for one process; any number of threads ask it.

    ``conf`` has the options of ``networks``. ``unfiltered`` returns, by a connection, why each
    cluster that has hosts can't filter; empty: it can. It is asked every ``SECONDS`` at the most,
    and only where the option is ``auto``.
    """

    def __init__(
        self,
        conf: cfg.ConfigOpts,
        unfiltered: Callable[[C], Mapping[str, str]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._conf, self._unfiltered, self._clock = conf, unfiltered, clock
        self._known: tuple[float, str] | None = None

    def on(self, connection: C) -> bool:
        """Return whether a port that is made now is filtered unless its maker says otherwise."""
        return not self.why_not(connection)

    def why_not(self, connection: C) -> str:
        """Return why ports can't be filtered, naming the option; empty: they are."""
        option = str(self._conf.networks.firewall)
        if option == ON:
            return ""
        if option != "auto":
            return f"[networks] firewall is {option}"
        why = self._of_clusters(connection)
        return f"[networks] firewall is auto, and {why}" if why else ""

    def _of_clusters(self, connection: C) -> str:
        known, now = self._known, self._clock()
        if known is not None and now < known[0]:
            return known[1]
        found = self._unfiltered(connection)
        reasons = [f"in cluster {name} {why}" for name, why in sorted(found.items()) if why]
        why = "; ".join(reasons) if found else "no cluster has reported yet"
        if found and (known is None or known[1] != why):
            if why:
                LOG.warning("New ports are not filtered by their security groups: %s.", why)
            else:
                LOG.info("New ports are filtered by their security groups.")
        self._known = (now + (SECONDS if found else SOON_SECONDS), why)
        return why
