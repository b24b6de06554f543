"""The embedded cloud: one process tree, started and watched by `micronova up`."""
