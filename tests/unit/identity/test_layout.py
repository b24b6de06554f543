from __future__ import annotations

import json

from identity.layout import GRANTS, PROJECTS, SEPARATE, SYSTEM_GRANTS, Job, catalog
from identity.passwords import USERS


def test_grants_name_known_users_and_projects() -> None:
    assert set(GRANTS) == {*USERS, *SEPARATE}
    assert set(SYSTEM_GRANTS) <= set(SEPARATE)
    assert {project for grants in GRANTS.values() for project, _ in grants} <= set(PROJECTS)


def test_catalog_joins_paths_once() -> None:
    urls = {entry.type: entry.url for entry in catalog("http://k:5000/v3", "http://api:8774/")}
    assert urls == {
        "identity": "http://k:5000",
        "compute": "http://api:8774/compute/v2.1",
        "placement": "http://api:8774/placement",
        "image": "http://api:8774/image",
        "network": "http://api:8774/network",
        "block-storage": "http://api:8774/volume/v3",
        "volumev3": "http://api:8774/volume/v3",
        "clustering": "http://api:8774/clustering",
    }


def test_a_job_crosses_a_pipe_and_hides_its_passwords() -> None:
    job = Job(endpoints=catalog("http://k/v3", "http://api"), passwords={"admin": "hidden"})
    assert Job.from_dict(json.loads(json.dumps(job.to_dict()))) == job
    assert "hidden" not in repr(job)
