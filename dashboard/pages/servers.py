"""All pages about servers."""

from __future__ import annotations

from dashboard.page import Page
from dashboard.pages import server_list
from dashboard.pages.create import form
from dashboard.pages.server import act, console, history, log, metadata, network, overview, storage
from dashboard.rights import May

_SERVER = "/servers/{server_id:uuid}"
PAGES = (
    *server_list.PAGES,
    *form.PAGES,
    Page(_SERVER, overview.show, calls=3),
    *network.PAGES,
    *storage.PAGES,
    Page(f"{_SERVER}/console", console.show, May.CHANGE, calls=2),
    Page(f"{_SERVER}/console", console.open_console, May.CHANGE, "POST", calls=3),
    Page(f"{_SERVER}/log", log.show, May.CHANGE, calls=3),
    Page(f"{_SERVER}/history", history.show, calls=2),
    Page(f"{_SERVER}/metadata", metadata.show, calls=2),
    Page(f"{_SERVER}/metadata", metadata.describe, May.CHANGE, "POST", calls=2),
    Page(f"{_SERVER}/name", metadata.rename, May.CHANGE, "POST"),
    Page(f"{_SERVER}/tags", metadata.tag, May.CHANGE, "POST"),
    *act.PAGES,
)
