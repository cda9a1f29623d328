"""The verbs, each in a module that is imported when it is used.

A module has ``arguments(parser)``, which adds to the parser, and ``run(call)``, which returns the exit code.
"""
