"""The objects of Cluster API: contracts, conditions, topology."""
