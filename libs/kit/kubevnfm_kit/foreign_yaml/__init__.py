"""Reads YAML of others, in bytes, depth, nodes and time bounded; alone in importing PyYAML (.importlinter).

There are three readers, because there are three meanings of a scalar without quotes: those of Kubernetes, of TOSCA and of Heat.
"""
