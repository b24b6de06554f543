from __future__ import annotations

import falcon
import falcon.testing
from oslo_context import context as oslo_context

from common.context import RequestContext
from common.web import ContextMiddleware


class Inner:
    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        now = oslo_context.get_current()
        resp.media = [now.project_id, getattr(now, "server_uuid", None)]


def test_a_request_made_within_a_thread_leaves_its_context_as_it_was() -> None:
    app = falcon.App(middleware=[ContextMiddleware()])
    app.add_route("/inner", Inner())
    outer = RequestContext(project_id="demo", server_uuid="s1")
    headers = {"X-Identity-Status": "Confirmed", "X-Project-Id": "service"}
    answer = falcon.testing.TestClient(app).simulate_get("/inner", headers=headers)
    assert answer.json == ["service", None]
    assert oslo_context.get_current() is outer
