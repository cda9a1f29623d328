"""Waits and watches: until objects are ready, and whether another party has changed them."""
