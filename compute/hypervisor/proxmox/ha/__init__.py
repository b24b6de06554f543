"""High availability: affinity rules, and whose they are."""
