"""Bulk reads of a cluster, and the facts they give."""
