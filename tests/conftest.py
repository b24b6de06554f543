"""For every test: oslo.messaging is first imported the way the services do, without eventlet."""

from __future__ import annotations

import hypothesis

import common.rpc  # noqa: F401

# A busy machine is no reason to fail.
hypothesis.settings.register_profile("micronova", deadline=None)
hypothesis.settings.load_profile("micronova")
