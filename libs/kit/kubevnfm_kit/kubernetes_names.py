"""The names that Kubernetes takes, and those that it keeps for itself. Source: Kubernetes documentation, "Object Names and IDs"."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""A name of 1 to 63 characters as RFC 1123 defines a label: that of a namespace."""
_OWN: Final = "kube-"


def is_label(text: str) -> bool:
    """Return whether a text is an RFC 1123 label in lower case."""
    return re.fullmatch(LABEL, text) is not None


def is_of_kubernetes(namespace: str) -> bool:
    """Return whether a namespace is one of Kubernetes itself, such as ``kube-system``."""
    return namespace.startswith(_OWN)
