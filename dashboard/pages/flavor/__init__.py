"""Flavors, for administrators: sizes, extra specs, and the projects that may use one."""
