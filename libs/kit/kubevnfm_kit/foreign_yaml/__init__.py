"""Reads YAML of others, in bytes, depth, nodes and time bounded; alone in importing PyYAML (.importlinter).

There are two readers, because there are two meanings of a scalar without quotes: that of Kubernetes, and that of TOSCA and Heat.
"""

from kubevnfm_kit.foreign_yaml.kubernetes import read_kubernetes_yaml, read_one_kubernetes_yaml
from kubevnfm_kit.foreign_yaml.reader import Budget, YamlRefused, YamlTooLarge
from kubevnfm_kit.foreign_yaml.tosca import read_tosca_yaml
from kubevnfm_kit.foreign_yaml.writing import write_yaml, write_yaml_documents

__all__ = [
    "Budget",
    "YamlRefused",
    "YamlTooLarge",
    "read_kubernetes_yaml",
    "read_one_kubernetes_yaml",
    "read_tosca_yaml",
    "write_yaml",
    "write_yaml_documents",
]
