"""Reads YAML of others, in bytes, depth, nodes and time bounded; alone in importing PyYAML (.importlinter).

There are two readers, because there are two meanings of a scalar without quotes: that of Kubernetes, and that of TOSCA and Heat.
"""
