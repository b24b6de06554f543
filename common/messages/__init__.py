"""The messages between services: commands to agents, their reports, facts about hosts.

All are frozen dataclasses of plain values that cross RPC as JSON (``common.codec``). A field added
later has a default, so that a message of an older release still loads.
"""
