"""What all kinds of VNFs share: instances, operations, plans and the engine that runs them."""
