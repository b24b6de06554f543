"""What all operations run on: the runner, stages, threads, periodic tasks."""
