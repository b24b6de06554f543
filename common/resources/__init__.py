"""The resources of a cloud as data: their states, what may begin in which, their settings."""
