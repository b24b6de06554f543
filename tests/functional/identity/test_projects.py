"""The services' user may ask the real Keystone which projects there are."""

from __future__ import annotations

from common import ids
from common.clients.projects import Projects
from tests.functional.keystone_fixture import RunningKeystone


def test_known_missing_and_not_to_be_looked_at(keystone: RunningKeystone) -> None:
    service = keystone.session("micronova", "service")
    demo = str(keystone.session().get_project_id())
    projects = Projects(service)
    assert not projects.missing(demo)
    assert projects.missing(ids.new_uuid().replace("-", ""))
    assert projects.missing("no/such project")
    # Who may not look believes everything.
    assert not Projects(keystone.session()).missing("nowhere")
