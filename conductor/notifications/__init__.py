"""Notifications on the message bus in Nova's formats, for billing, DNS and the like.

The conductor's transactions write what is to be sent into an outbox (`recorder`), one conductor
at a time sends it (`sender`).
"""
