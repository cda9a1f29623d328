"""What the requests for operations mean: one module a task, and what several of them share."""
