"""Placement: resources and their allocation, over the OpenStack Placement API."""
