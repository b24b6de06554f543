"""What every service shares: errors, states, messages, RPC, context, configuration, logging."""

import sys

# Before any of OpenStack's libraries, which load eventlet wherever it is installed: it looks
# missing to them. ``common.threads`` chooses their threads.
sys.modules.setdefault("eventlet", None)  # type: ignore[arg-type]
