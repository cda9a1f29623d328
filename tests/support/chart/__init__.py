"""The Helm chart `deploy/chart`: its schema of values, what it renders, and the processes that its pods stand for."""
