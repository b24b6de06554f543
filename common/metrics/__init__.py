"""What the services count and measure for Prometheus, and where they answer it."""
