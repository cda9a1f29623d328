"""Limits of one set of manifests: all files of a CNF together."""

from __future__ import annotations

from typing import Final

from kubevnfm_kit.foreign_yaml.reader import Budget

MOST_NODES: Final = 1_000_000
"""Members of lists and maps."""
MOST_CHARACTERS: Final = 64 * 2**20
_LONGEST_S: Final = 20.0
"""Twice that of one text (foreign_yaml)."""
MOST_PROBLEMS: Final = 100
"""The most wrong places that an error names."""
LONGEST_PROBLEM: Final = 500
"""Characters. A name can be as long as its file."""


def budget_of_a_set() -> Budget:
    """Return what the texts of a set may cost together."""
    return Budget(MOST_NODES, MOST_CHARACTERS, _LONGEST_S)
