"""The one rule of proxies, for services and the command line; on the standard library, so that both start fast."""
