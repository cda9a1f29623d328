"""One run of a stand-in program: its input, and how it ended."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from kubevnfm_lab.machines.apiclient import Apis
from kubevnfm_lab.machines.balancer import Balancer
from kubevnfm_lab.machines.controlplanes import ControlPlanes
from kubevnfm_lab.machines.machine import Machine
from kubevnfm_lab.machines.nodes import Nodes
from kubevnfm_lab.machines.relay import Target
from kubevnfm_lab.machines.settings import MachineSettings
from kubevnfm_lab.ports import Clusters, Faults


@dataclass(frozen=True)
class Exit:
    """How a program ended."""

    code: int = 0
    stdout: str | bytes = ""
    stderr: str = ""


class Failed(Exception):
    """A program ends early with a message on stderr."""

    def __init__(self, message: str, code: int = 1, *, stdout: str = "") -> None:
        super().__init__(message)
        self.message, self.code, self.stdout = message, code, stdout


class World(Protocol):
    """The world beyond a machine, as programs see it."""

    @property
    def settings(self) -> MachineSettings: ...

    @property
    def clusters(self) -> Clusters: ...

    @property
    def control_planes(self) -> ControlPlanes: ...

    @property
    def faults(self) -> Faults: ...

    @property
    def balancer(self) -> Balancer: ...

    @property
    def apis(self) -> Apis: ...

    @property
    def nodes(self) -> Nodes: ...

    def machine_at(self, address: str) -> Machine | None:
        """Return the powered machine that has this address."""
        ...

    def floating_target(self, address: str, port: int) -> Sequence[Target]:
        """Return where connections to a floating address go."""
        ...


@dataclass(frozen=True)
class Call:
    """One run: which program on which machine, and its environment."""

    program: str
    args: Sequence[str]
    machine: Machine
    world: World
    cwd: Path
    env: Mapping[str, str]
    read_stdin: Callable[[], Awaitable[bytes]] = field(repr=False)
    """Read the input to its end; possible once only."""

    @property
    def is_root(self) -> bool:
        """Return whether it runs as root (or with sudo)."""
        return self.env.get("USER", "root") == "root"

    def path(self, shown: str) -> Path:
        """Return the real path of an argument."""
        return self.machine.path(shown, cwd=self.cwd)


Program = Callable[[Call], Awaitable[Exit]]


@dataclass
class Options:
    """Parsed arguments: flags and values by name, and the remaining words."""

    words: list[str]
    values: dict[str, list[str]]

    def has(self, *names: str) -> bool:
        """Return whether any of the options was given."""
        return any(name in self.values for name in names)

    def get(self, *names: str, default: str = "") -> str:
        """Return the last value given to any of the names."""
        found = [value for name in names for value in self.values.get(name, [])]
        return found[-1] if found else default

    def all(self, *names: str) -> list[str]:
        """Return every value given to any of the names."""
        return [value for name in names for value in self.values.get(name, [])]


def options(args: Sequence[str], *, with_value: Sequence[str] = (), glued: str = "") -> Options:
    """Parse arguments as getopt and Go's flag packages do.

    ``with_value``: the options (``--name``, ``-n``) whose value may be the next argument; ``--name=value`` always
    works. ``glued``: letters whose value may follow at once (``-ojson``); other single letters may be joined (``-sL``).
    """
    taken = Options([], {})
    rest = list(args)
    while rest:
        arg = rest.pop(0)
        if arg == "--":
            taken.words += rest
            break
        if not arg.startswith("-") or arg == "-":
            taken.words.append(arg)
            continue
        name, equals, value = arg.partition("=")
        if arg in with_value:
            taken.values.setdefault(arg, []).append(rest.pop(0) if rest else "")
        # Go's flag package also accepts "-n=value" of a single letter.
        elif arg.startswith("--") or (equals and len(name) == 2):
            taken.values.setdefault(name, []).append(value)
        elif len(arg) > 2 and arg[1] in glued:
            taken.values.setdefault(arg[:2], []).append(arg[2:])
        else:
            _letters(arg[1:], rest, taken, with_value, glued)
    return taken


def _letters(letters: str, rest: list[str], taken: Options, with_value: Sequence[str], glued: str) -> None:
    for index, letter in enumerate(letters):
        if f"-{letter}" in with_value:
            # In "-xvalue" the rest of the letters is the value.
            following = letters[index + 1 :]
            value = following or (rest.pop(0) if rest else "")
            taken.values.setdefault(f"-{letter}", []).append(value)
            return
        taken.values.setdefault(f"-{letter}", []).append("")
