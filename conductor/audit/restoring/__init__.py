"""Decides what a restored record and its clusters differ in, and applies it."""
