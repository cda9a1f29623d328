"""Everything done inside the machines, over SSH."""
