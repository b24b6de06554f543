"""Revisions that contract the schema, once no service of the release before them runs."""
