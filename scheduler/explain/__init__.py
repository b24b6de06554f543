"""Why hosts were refused, why there was none, and the smallest change that would do."""
