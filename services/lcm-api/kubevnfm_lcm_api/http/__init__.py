"""The HTTP parts that the resources of all subjects share: bodies, lists, conditions and errors."""
