"""Placement: counts what there is and who has it, over the OpenStack Placement API."""
