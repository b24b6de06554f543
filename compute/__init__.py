"""Acts on hypervisors, one step at a time, and stores nothing."""
