"""The services as processes: their configuration, what each is wired to, and how they run."""
