"""A choice as a ``Decision``: what is kept of it, and why nowhere."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

from common.messages.scheduling import Alternate, Decision, Requested
from scheduler import explain
from scheduler.choose import Choice, Filter, Refusals
from scheduler.fleet import Fleet
from scheduler.nearest import nearest


class Outcomes:
    """Tells of choices; what is kept is capped by ``[scheduler]`` options."""

    def __init__(self, conf: cfg.ConfigOpts, filters: Mapping[str, Filter]) -> None:
        self._options = conf.scheduler
        self._filters = filters

    @property
    def told(self) -> int:
        """How many of the best hosts are told of at the most."""
        return int(max(self._options.scores_kept, self._options.alternates + 1))

    def won(self, request: Requested, choice: Choice, position: int, considered: int) -> Decision:
        """The host at this position of the ranking, with those after it as alternates."""
        chosen = choice.ranked[position].host
        following = choice.ranked[position + 1 : position + 1 + self._options.alternates]
        return Decision(
            request.server_uuid,
            chosen.name,
            chosen.facts.uuid,
            tuple(
                Alternate(item.host.name, item.host.facts.uuid, round(item.total, 4))
                for item in following
            ),
            considered,
            _counts(choice),
            self._kept(choice.refused),
            {
                item.host.name: {**item.scores, "total": round(item.total, 4)}
                for item in choice.ranked[: self._options.scores_kept]
            },
        )

    def nowhere(self, request: Requested, choice: Choice, hosts: Fleet) -> Decision:
        """No host, and why not."""
        if choice.passed:
            suggestion, reason = None, explain.not_offered(choice.passed)
        else:
            suggestion = nearest(hosts, request, self._filters)

            def told(name: str, why: str) -> str:
                [(_, position)] = hosts.positions([name])
                return explain.unnamed(hosts.host(position), why)

            reason = explain.sentence(len(hosts), choice.refused, suggestion, told)
        return Decision(
            request.server_uuid,
            None,
            considered=len(hosts),
            counts=_counts(choice),
            refused=self._kept(choice.refused),
            reason=reason,
            suggestion=suggestion,
        )

    def _kept(self, refused: Mapping[str, Refusals]) -> dict[str, dict[str, tuple[str, ...]]]:
        """Reasons with their hosts; room that one filter does not need is left to the others."""
        room, kept = self._options.reasons_kept, {}
        fewest_first = sorted(refused, key=lambda name: len(refused[name]))
        for number, name in enumerate(fewest_first):
            told = refused[name].first(room // (len(refused) - number))
            room -= len(told)
            hosts: dict[str, list[str]] = {}
            for host, reason in told.items():
                hosts.setdefault(reason, []).append(host)
            kept[name] = {reason: tuple(those) for reason, those in hosts.items()}
        return {name: kept[name] for name in refused}


def _counts(choice: Choice) -> dict[str, int]:
    return {name: len(hosts) for name, hosts in choice.refused.items()}
