"""The common ground of all kinds of VNFs: instances, operations, plans and the engine that runs them."""
