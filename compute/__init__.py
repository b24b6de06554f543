"""Acts on hypervisors, one step at a time; keeps nothing that isn't seen again."""
