"""Hostile requests to every API of an embedded cloud: ``python -m benchmarks.fuzz`` prints JSON.

`surface` knows what there is to ask, `values` what goes wrong, `requests` makes a request of both
from a seed and a number, `sender` sends it, `campaign` runs many and cleans up.
"""
