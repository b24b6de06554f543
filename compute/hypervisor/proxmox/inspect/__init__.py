"""Closer looks that the conductor asks for: one VM, or all that may be ours."""
