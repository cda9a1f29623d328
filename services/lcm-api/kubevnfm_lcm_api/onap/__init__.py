"""The paths of ONAP's multicloud-k8s: a thin translation of the multi-cloud API without rules of its own (multicloud.md MC-002)."""
