"""A fixed sample of `python -m benchmarks.fuzz`: hostile requests are refused, nothing stumbles.

MICRONOVA_TEST_FUZZ_REQUESTS is how many there are.
"""

from __future__ import annotations

import os
from pathlib import Path

from benchmarks.fuzz.campaign import Campaign
from benchmarks.fuzz.requests import Maker
from benchmarks.fuzz.surface import targets
from tests.fixtures import null
from tests.functional.audits import Audits
from tests.functional.cloud import embedded_cloud

REQUESTS = int(os.environ.get("MICRONOVA_TEST_FUZZ_REQUESTS", "200"))
SECONDS = 120


def test_hostile_requests_are_answered_and_leave_nothing(tmp_path: Path) -> None:
    with embedded_cloud(tmp_path / "state", audited=False, driver=null.DRIVER) as cloud:
        campaign = Campaign(cloud, seed=2)
        campaign.run(REQUESTS, SECONDS)
        assert campaign.errors == []
        assert campaign.unanswered == []
        assert campaign.done == REQUESTS
        assert campaign.clean() == []
        Audits(cloud).assert_clean()


def test_a_seed_gives_the_same_requests() -> None:
    known = {"uuid": ("a", "b"), "server_id": ("c",)}
    one, same = (Maker(5, targets(), known) for _ in range(2))
    other = Maker(6, targets(), known)
    made = [one.make(number) for number in range(300)]
    assert made == [same.make(number) for number in range(300)]
    assert made != [other.make(number) for number in range(300)]
    assert {each.api for each in made} >= {"compute", "placement", "image", "network", "identity"}
