"""Registers the servers of VNF instances at the operators' notifiers of faults."""
