"""The run of a confined process: what it was given, and what became of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from kubevnfm_kit.errors import VnfmError


class SandboxUnavailable(VnfmError, code="sandbox-unavailable", title="Code of the package not run", status=503):
    """The kernel refuses to confine a process, so code of packages is not run; an operator can change that."""

    def __init__(self, reason: str) -> None:
        super().__init__(
            f"code of a VNF package is not run, because it cannot be confined: {reason}. Allow namespaces "
            f"to this service, or set trust_packages if you trust every package (docs/security.md)"
        )
        self.reason = reason


class SandboxState(StrEnum):
    """How code of packages is run."""

    CONFINED = "confined"
    """With namespaces and a seccomp filter."""
    TRUSTED = "trusted"
    """The kernel refuses one of them, and the operator trusts all packages."""
    REFUSED = "refused"
    """The kernel refuses one of them, or the sandbox does not work: code of packages is not run."""


@dataclass(frozen=True)
class Limits:
    """The limits of one run."""

    timeout_s: float = 60.0
    memory_mib: int = 512
    parallel: int = 4
    trust_packages: bool = False
    """Whether code is also run where the kernel refuses a part of the confinement."""
    without: frozenset[str] = frozenset()
    """For tests: behave like a kernel that refuses these of ``namespaces``, ``mounts``, ``seccomp``."""


@dataclass(frozen=True)
class Program:
    """The code that runs in the sandbox: the function ``run(given, package)`` of a module of ours, which calls the foreign code."""

    entry: str
    """The module with ``run`` and the exception class ``Refused``; may list ``PRELOADED`` modules."""
    shim: Path
    """The folder that contains it, first in the search path for modules."""
    package: Path
    """The folder of the package, which the code can read."""
    modules: tuple[str, ...] = ()
    """Third-party modules of the service's environment that the code may import."""
    watched: bool = True
    """Whether an audit hook also refuses, with a plain text, what the kernel refuses."""
    native: frozenset[str] = frozenset()
    """Modules of Python in native code that the code may import in addition."""
    imports: Path | None = None
    """A folder of further modules of ours that the code may import, after Python's own."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Further folders that the code can read, by a name of letters, digits and underscores; ``run`` finds their places in
    ``given["folders"]``."""
    reach: tuple[tuple[str, int], ...] = ()
    """The addresses and TCP ports to which the code may connect; port 0 stands for any. With one of them it may have threads."""


@dataclass(frozen=True)
class Ended:
    """How a run ended."""

    answer: bytes
    """JSON, or less if the process ended early; cut after the first byte above ANSWER_BYTES."""
    said: bytes
    """The end of what the code wrote to stdout and stderr."""
    status: int
    timed_out: bool


@dataclass(frozen=True)
class Script:
    """A Python file of a package that is run as a process."""

    file: str
    """Its path in the package."""
    package: Path
    """The folder of the package, which the script can read; its path there is in ``KUBEVNFM_PACKAGE``."""
    shim: Path
    """A folder of modules that the script may import."""
    via: str = ""
    """A module of ``shim`` that is executed instead, and finds the script's path in ``sys.argv[0]``."""
    stdin: bytes = b""
    given: Mapping[str, object] | None = None
    """The dictionary of plain values whose pickle the script reads from stdin, in place of ``stdin``."""
    folders: Mapping[str, Path] = field(default_factory=dict)
    """Entries that ``given`` gets in addition: folders that the script can read; the value is the place where it finds one."""
    timeout_s: float | None = None
    """None: the limit of the sandbox."""
    modules: tuple[str, ...] = ()
    """As in Program."""
    native: frozenset[str] = frozenset()
    """As in Program, beside those that every script may import."""
    reach: tuple[tuple[str, int], ...] = ()
    """As in Program."""
    names: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The addresses of the names that the script can look up, in lower case; it reaches no name server."""
    private_files: Mapping[str, bytes] = field(default_factory=dict, repr=False)
    """Contents of files that the script finds by an environment variable: of mode 0600, and gone when the process has ended,
    however it ends."""


@dataclass(frozen=True)
class ScriptEnded:
    """How a script ended."""

    status: int
    """Its exit status; that of a process if the script ended the process itself."""
    stdout: bytes
    """Its beginning only, if it is too long; ``unreadable`` says so. If the script was killed, the end of what it printed, also
    of what it had not flushed."""
    stderr: bytes
    """The end of its stderr."""
    timed_out: bool
    value: object = None
    """The object whose pickle stdout is, as JSON; None if stdout is empty or something else. The sandbox has read the pickle."""
    unreadable: str = ""
    """Why stdout, if it is not empty, is no pickle of plain values. Text of the package's code."""
    refused: str = ""
    """Why what the process answered is not accepted; a text of ours. The other fields are then what is known all the same."""


class ScriptRefused(VnfmError, code="script-refused", title="Code of the package not run"):
    """The script cannot be executed; the message says why."""
