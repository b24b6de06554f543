"""High availability: affinity rules, and who owns them."""
