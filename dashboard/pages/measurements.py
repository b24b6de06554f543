"""Charts of the measurements of a server, a node or a storage."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dashboard.answer import Answer, view
from dashboard.cloud import COMPUTE, Call, segment
from dashboard.drawing import charts
from dashboard.page import Page
from dashboard.rights import May
from dashboard.visit import Visit

PERIODS = ("hour", "day", "week", "month", "year")
#: measurements are new once a minute
REFRESH_SECONDS = 60


def of_server(visit: Visit) -> Answer:
    """Show the charts of a server; its page asks for them without the rest."""
    uuid = visit.params["server_id"]
    path = f"/servers/{segment(uuid)}"
    if visit.is_fragment:
        return _view(visit, path, uuid, charts.OF_SERVER, visit.cloud.send(_asked(visit, path)))
    server, answer = visit.cloud.together(Call(COMPUTE, path), _asked(visit, path))
    return _view(visit, path, server["server"]["name"] or uuid, charts.OF_SERVER, answer)


def of_node(visit: Visit) -> Answer:
    """Show the charts of a node, or of one of its storages."""
    host = visit.params["host"]
    path = f"/nodes/{segment(host)}"
    drawings = charts.OF_STORAGE if visit.query.get("storage") else charts.OF_HOST
    answer = visit.cloud.send(_asked(visit, f"/hosts/{segment(host)}"))
    return _view(visit, path, host, drawings, answer)


def _asked(visit: Visit, path: str) -> Call:
    query = {"period": _period(visit), "storage": visit.query.get("storage")}
    return Call(COMPUTE, f"{path}/metrics", query, optional=True)


def _period(visit: Visit) -> str:
    asked = visit.query.get("period", "")
    return asked if asked in PERIODS else PERIODS[0]


def _view(
    visit: Visit, back: str, name: str, drawings: Sequence[charts.Drawing], answer: Any
) -> Answer:
    found = answer["metrics"] if answer else {"series": (), "times": ()}
    known, times = charts.series(found), found["times"]
    return view(
        "measurements.html",
        name=name,
        back=back,
        here=f"{back}/charts",
        storage=visit.query.get("storage", ""),
        period=_period(visit),
        periods=PERIODS,
        charts=list(charts.charts(drawings, known, times)),
        known=known,
        table=list(charts.table(known, times)),
        missing="" if answer else answer.message,
        read_at=found.get("read_at", ""),
        refresh_seconds=REFRESH_SECONDS,
        box=(charts.WIDTH, charts.HEIGHT),
    )


OF_SERVERS = (Page("/servers/{server_id:uuid}/charts", of_server, calls=2),)
OF_NODES = (Page("/nodes/{host}/charts", of_node, May.OPERATE),)
