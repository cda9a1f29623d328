"""The command line ``kubevnfm``: asks a gateway over HTTP, and knows none of the services."""
