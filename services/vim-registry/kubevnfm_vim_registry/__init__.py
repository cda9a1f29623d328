"""VIMs and their access data."""
