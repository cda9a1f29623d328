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
    "describe": Verb(
        f"{_VERBS}.describe", LOOK, "Show a VNF as a tree, an operation with its steps, anything else whole"
    ),
    "why": Verb(f"{_VERBS}.why", LOOK, "Say why an operation waits or failed, and what one can do"),
    "logs": Verb(f"{_VERBS}.logs", LOOK, "Show the output of an operation's machines"),
    "trace": Verb(f"{_VERBS}.trace", LOOK, "Show where the time of an operation went: its steps, tries and tasks"),
    "events": Verb(f"{_VERBS}.events", LOOK, "Show what happens, as it happens"),
    "drift": Verb(f"{_VERBS}.drift", LOOK, "List VNFs whose resources others have changed or deleted"),
    "create": Verb(f"{_VERBS}.create", CHANGE, "Create a VNF instance, or another thing from a file"),
    "instantiate": Verb(f"{_VERBS}.tasks", CHANGE, "Instantiate a VNF"),
    "scale": Verb(f"{_VERBS}.tasks", CHANGE, "Scale a VNF by steps, or to levels"),
    "heal": Verb(f"{_VERBS}.tasks", CHANGE, "Heal a VNF, or VNFCs of it"),
    "operate": Verb(f"{_VERBS}.tasks", CHANGE, "Start or stop a VNF"),
    "change-package": Verb(f"{_VERBS}.tasks", CHANGE, "Change the package of a VNF"),
    "modify": Verb(f"{_VERBS}.tasks", CHANGE, "Change name, description, metadata and the like of a VNF"),
    "terminate": Verb(f"{_VERBS}.tasks", CHANGE, "Terminate a VNF"),
    "top": Verb(f"{_VERBS}.top", LOOK, "Show what runs, and how much the VIMs have left"),
    "ack": Verb(f"{_VERBS}.ack", CHANGE, "Acknowledge alarms: a person has seen them"),
    "upload": Verb(
        f"{_VERBS}.upload", CHANGE, "Upload a VNF package, an archive or a folder, and wait until it is onboarded"
    ),
    "apply": Verb(f"{_VERBS}.apply", CHANGE, "Make a site what its file says; the same file twice changes nothing"),
    "diff": Verb(f"{_VERBS}.diff", CHANGE, "Show what apply would change"),
    "delete": Verb(f"{_VERBS}.delete", CHANGE, "Delete things, or remove what a site file has made"),
    "wait": Verb(f"{_VERBS}.wait", OPERATIONS, "Follow an operation until it ends; say what blocks it"),
    "watch": Verb(f"{_VERBS}.wait", OPERATIONS, "Another name of wait"),
    "retry": Verb(f"{_VERBS}.outcomes", OPERATIONS, "Continue a failed operation at its failed step"),
    "rollback": Verb(f"{_VERBS}.outcomes", OPERATIONS, "Undo a failed operation"),
    "fail": Verb(f"{_VERBS}.outcomes", OPERATIONS, "Give a failed operation up"),
    "cancel": Verb(f"{_VERBS}.outcomes", OPERATIONS, "Stop a running operation"),
    "explain": Verb(f"{_VERBS}.explain", ITSELF, "Show the fields of a site file, or of a request for a package"),
    "config": Verb(f"{_VERBS}.config", ITSELF, "Show and change the gateways that the command line knows"),
    "completion": Verb(f"{_VERBS}.completion", ITSELF, "Print the completion script for bash, zsh or fish"),
    "doctor": Verb(f"{_VERBS}.doctor", ITSELF, "Check the configuration, the gateway and the VIMs, and say what to do"),
    "version": Verb(f"{_VERBS}.version", ITSELF, "Show the versions of the command line and of the gateway"),
}
