"""Site files: what a site has as YAML, applied, compared and removed."""
