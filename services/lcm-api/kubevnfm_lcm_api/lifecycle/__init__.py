"""The life cycle of VNF instances: requests, plans, steps, and the engine that runs them."""
