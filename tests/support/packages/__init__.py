"""VNF packages, templates and manifests."""
