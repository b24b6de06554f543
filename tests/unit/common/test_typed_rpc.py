"""A topic's protocol: message classes on both sides, plain values between them."""

from __future__ import annotations
