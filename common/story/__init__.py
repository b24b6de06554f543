"""What an explanation says: times, names, matrices, timelines; for terminals and pages alike."""
