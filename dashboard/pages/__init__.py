"""The pages, one subject a file; `dashboard.sections` is their table."""
