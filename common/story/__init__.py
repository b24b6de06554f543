"""What an explanation says: times, names, matrices and timelines, for terminals and pages alike."""
