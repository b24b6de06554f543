"""HTTP: what the APIs of this project share."""
