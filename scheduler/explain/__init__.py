"""Why a host was refused, why none was found, and the smallest change that would do."""
