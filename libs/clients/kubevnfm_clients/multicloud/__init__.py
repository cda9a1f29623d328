"""The types, ports and clients by which the gateway asks other services for the multi-cloud API (docs/specification/multicloud.md)."""
