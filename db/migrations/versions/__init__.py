"""Revisions that create and expand the schema: services of the release before them run on."""
