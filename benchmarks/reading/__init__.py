"""What clouds and their processes use, as benchmarks read it."""
