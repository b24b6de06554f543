"""Hostile requests to every API of an embedded cloud: ``python -m benchmarks.fuzz`` prints JSON.

`surface` has the requests to make, `values` the hostile values, `requests` makes a request of both
from a seed and a number, `sender` sends it, `campaign` runs many and cleans up.
"""
