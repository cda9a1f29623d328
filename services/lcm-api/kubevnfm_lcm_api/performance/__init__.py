"""Performance management (SOL003 chapter 6): PM jobs, their reports, and thresholds, measured on a Prometheus."""
