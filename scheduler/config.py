"""Options of the scheduler."""

from __future__ import annotations

from collections.abc import Mapping

from oslo_config import cfg

#: the weighers that a mode sets
OF_ROOM = ("ram", "cpu", "disk", "storage")
CLUSTER_SCORE = "cluster_score"

OPTIONS = [
    cfg.ListOpt(
        "filters",
        # Empty: scheduler.filters.found(). It loads numpy, which no other service needs.
        default=[],
        help="Filters, in order; entry points of the group micronova.scheduler.filters.",
    ),
    cfg.DictOpt(
        "weighers",
        default={
            "ram": "1.0",
            "cpu": "1.0",
            "disk": "0.5",
            "storage": "0.5",
            # Only between hosts with the same usage.
            "load": "0.01",
            "build_failure": "10.0",
            "image_cached": "0.5",
            # More than all weighers of room together, or they would have no effect.
            "soft_affinity": "5.0",
            "soft_anti_affinity": "5.0",
            # HA migrates a guest to the nodes that its rule prefers: so it may start there.
            "ha_priority": "5.0",
        },
        help="Weighers with their multipliers; entry points of the group "
        "micronova.scheduler.weighers. A multiplier of 0 disables a weigher, a negative one "
        "turns spreading into packing. The metadata <weigher>_weight_multiplier of an "
        "aggregate replaces it for the aggregate's hosts. Scores are first scaled to 0…1, "
        "except those of build_failure, which are 0 to -1.",
    ),
    cfg.StrOpt(
        "mode",
        default="spread",
        choices=[
            ("spread", "Servers go where most is free."),
            ("pack", "Servers go where least is free, so that whole hosts stay empty."),
            (
                "cluster-score",
                "Servers go where they leave all hosts together filled most evenly: what "
                "'micronova rebalance' strives for.",
            ),
        ],
        help="How the weighers of room (ram, cpu, disk, storage) are used. spread: with their "
        "multipliers; pack: with the negative ones; cluster-score: the weigher "
        "cluster_score replaces them, with the sum of their multipliers.",
    ),
    cfg.IntOpt(
        "alternates",
        default=3,
        min=0,
        max=20,
        help="Further hosts that are kept with an operation, in case the chosen one fails.",
    ),
    cfg.IntOpt(
        "candidates",
        default=1000,
        min=1,
        help="Candidates requested from placement for one decision, in addition to hosts that "
        "are out of service. If the filters refuse them all, and there are other hosts, all "
        "are requested.",
    ),
    cfg.IntOpt(
        "claim_attempts",
        default=5,
        min=1,
        max=100,
        help="Hosts that a claim names, best first: the first with room is claimed. Where none "
        "has, the decision is repeated once.",
    ),
    cfg.IntOpt(
        "scores_kept",
        default=10,
        min=1,
        help="Number of best hosts whose scores are stored with the decision.",
    ),
    cfg.IntOpt(
        "reasons_kept",
        default=1000,
        min=1,
        help="Number of refused hosts stored with their reason, in up to 40 kB; for all but the "
        "first of the servers of one create in 1 kB each. All are counted.",
    ),
    cfg.StrOpt(
        "name",
        help="Name of this scheduler in the list of services, unique in the cloud; default: the "
        "machine's host name, with -2, -3 and so on for further ones of one machine.",
    ),
]


def in_mode(mode: str, multipliers: Mapping[str, float]) -> dict[str, float]:
    """Return the multipliers of the weighers in a mode; see the option."""
    room = {name: value for name, value in multipliers.items() if name in OF_ROOM}
    others = {name: value for name, value in multipliers.items() if name not in OF_ROOM}
    if mode == "pack":
        return others | {name: -value for name, value in room.items()}
    if mode == "cluster-score":
        return {CLUSTER_SCORE: sum(room.values()) or 1.0} | others
    return dict(multipliers)


def register(conf: cfg.ConfigOpts) -> None:
    """Declare this module's options; idempotent."""
    conf.register_opts(OPTIONS, group="scheduler")
