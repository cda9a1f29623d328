"""The plan of a step: which objects are applied, in which order, and the policy for CNFs."""
