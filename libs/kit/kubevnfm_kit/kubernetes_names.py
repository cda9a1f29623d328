"""The names that Kubernetes takes, and those that it keeps for itself. Source: Kubernetes documentation, "Object Names and IDs"."""

from __future__ import annotations

import re
from typing import Final

LABEL: Final = "[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
"""A name of 1 to 63 characters as RFC 1123 defines a label: that of a namespace."""
LONGEST_RELEASE_NAME: Final = 53
"""Helm's limit, so that names of objects can be made from the name of a release."""
_RELEASE_PART: Final = "[a-z0-9]([a-z0-9-]*[a-z0-9])?"
RELEASE_NAME: Final = rf"^{_RELEASE_PART}(\.{_RELEASE_PART})*$"
"""A name that Helm takes for a release, but for its length."""
RELEASE_NAME_RULE: Final = (
    f"at most {LONGEST_RELEASE_NAME} small letters, digits, - and ., as Helm takes them, expected"
)
KUBERNETES_VERSION: Final = r"^v?[0-9]{1,3}(\.[0-9]{1,3}){1,2}([-+][0-9A-Za-z][0-9A-Za-z.+-]{0,63})?$"
"""A version that Helm's ``--kube-version`` takes."""
KUBERNETES_VERSION_RULE: Final = "a version such as 1.31 or v1.31.4 expected"
_OWN: Final = "kube-"


def is_label(text: str) -> bool:
    """Return whether a text is an RFC 1123 label in lower case."""
    return re.fullmatch(LABEL, text) is not None


def is_of_kubernetes(namespace: str) -> bool:
    """Return whether a namespace is one of Kubernetes itself, such as ``kube-system``."""
    return namespace.startswith(_OWN)


def is_kubernetes_version(text: str) -> bool:
    """Return whether a text is a version of Kubernetes as Helm takes it."""
    return re.fullmatch(KUBERNETES_VERSION, text) is not None


def is_release_name(text: str) -> bool:
    """Return whether Helm takes a text as the name of a release."""
    return len(text) <= LONGEST_RELEASE_NAME and re.fullmatch(RELEASE_NAME, text) is not None
