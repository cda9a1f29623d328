"""The rules of subscriptions: no I/O, no client library."""
