"""What pages draw: charts of measurements, trends, usage, networks."""
