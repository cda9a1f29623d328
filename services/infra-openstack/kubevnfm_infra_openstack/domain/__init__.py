"""Rules about stacks: what to create, whom a stack belongs to, what it holds. No I/O."""
