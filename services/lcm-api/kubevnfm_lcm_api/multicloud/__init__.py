"""``/multicloud/v1``, the API for regions, and for what VNFs of several regions share: one module for each of its resources."""
