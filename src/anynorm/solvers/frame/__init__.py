"""What solvers of every family share."""
