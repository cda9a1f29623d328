"""The rules of stacks: what Heat is given, what to do with a stack that exists, and how its facts are read."""
