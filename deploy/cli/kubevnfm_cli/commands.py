"""The table of verbs: all that help and completion need, without an import of any of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple


class Verb(NamedTuple):
    """A verb, the module that does it, and what help says."""

    module: str
    group: str
    summary: str


_VERBS: Final = "kubevnfm_cli.verbs"
LOOK: Final = "Look"
CHANGE: Final = "Change"
OPERATIONS: Final = "Operations"
ITSELF: Final = "The command line"

VERBS: Final[Mapping[str, Verb]] = {
    "get": Verb(f"{_VERBS}.get", LOOK, "List things of a kind, or show some of them"),
    "apply": Verb(f"{_VERBS}.apply", CHANGE, "Make a site what its file says; the same file twice changes nothing"),
    "diff": Verb(f"{_VERBS}.diff", CHANGE, "Show what apply would change"),
    "delete": Verb(f"{_VERBS}.delete", CHANGE, "Remove what a site file has made"),
    "wait": Verb(f"{_VERBS}.wait", OPERATIONS, "Follow an operation until it ends; say what blocks it"),
    "watch": Verb(f"{_VERBS}.wait", OPERATIONS, "Another name of wait"),
    "version": Verb(f"{_VERBS}.version", ITSELF, "Show the versions of the command line and of the gateway"),
}
