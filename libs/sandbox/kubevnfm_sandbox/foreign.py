"""ProgramSandbox: runs a program of others, such as helm, on files of a package as confined as the package's own code.

The program sees the folder of the package, what itself needs, and an empty folder that it may write to. It has no network and
starts no other process. Its memory is limited by what it writes to (RLIMIT_DATA), because the runtime of Go reserves more
addresses than it uses; a program in Go ends when the kernel refuses it more.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final

from kubevnfm_sandbox.launcher_config import THREADS
from kubevnfm_sandbox.process import Sandbox, in_memory
from kubevnfm_sandbox.runs import Program
from kubevnfm_sandbox.seccomp import FilterUnavailable, compiled

_HERE: Final = Path(__file__).parent
NOT_EXECUTED: Final = 126
"""The status of a run whose program the kernel does not execute in the sandbox: the launcher's own, as a shell's."""
_PLACE: Final = "/program"


@dataclass(frozen=True)
class ForeignProgram:
    """A run of a program of others.

    An argument or variable that begins with ``{package}`` or ``{room}`` begins with the place of the package, or of the folder to
    write to.
    """

    file: Path
    """The program itself, not a script that calls it."""
    arguments: Sequence[str]
    """Without its name."""
    package: Path
    """The folder, or the one file, of the package that the program can read."""
    environment: Mapping[str, str] = field(default_factory=dict)
    stdin: bytes = field(default=b"", repr=False)
    needs: Sequence[Path] = ()
    """Further files and folders that the program reads under their own paths: libraries, an interpreter."""
    output_mib: int = 16
    """The limit of its stdout."""


@dataclass(frozen=True)
class ForeignEnded:
    """How the run of a program of others ended."""

    status: int
    stdout: bytes
    said: bytes
    """The end of its stderr."""
    timed_out: bool
    is_cut: bool
    """Whether stdout has reached its limit."""


@dataclass(frozen=True)
class _Run(Program):
    """A program as `Sandbox` runs it."""

    program: Mapping[str, Any] = field(default_factory=dict)
    """The launcher's ``program``."""
    file: Path = Path()
    needs: Sequence[Path] = ()
    output_mib: int = 16


class ProgramSandbox(Sandbox):
    """Starts one process for each run, at most ``limits.parallel`` at the same time."""

    async def run_program(self, program: ForeignProgram) -> ForeignEnded:
        """Run the program to its end. Raises SandboxUnavailable."""
        said = bytearray()
        with TemporaryDirectory(prefix="kubevnfm-program-") as spare, in_memory("output") as output:
            run = _Run(
                entry="",
                shim=_HERE / "probe",
                package=_open_to_all(program.package, Path(spare), 0o644),
                file=_open_to_all(program.file, Path(spare), 0o755),
                needs=program.needs,
                output_mib=program.output_mib,
                program={
                    "arguments": [program.file.name, *program.arguments],
                    "environment": dict(program.environment),
                    "output": output,
                },
            )
            async with self._places:
                ended = await self._run(run, program.stdin, self._limits.timeout_s, said=said, passed=(output,))
            size = os.fstat(output).st_size
            stdout = os.pread(output, size, 0)
        is_cut = size >= program.output_mib * 2**20
        return ForeignEnded(ended.status, stdout, ended.said, ended.timed_out, is_cut)

    def _config(self, program: Program, room: str, spare: str, limit_s: float, **more: Any) -> Any:
        config = super()._config(program, room, spare, limit_s, **more)
        if not isinstance(program, _Run):
            return config
        try:
            filter_ = base64.b64encode(compiled(threads=True)).decode()
        except FilterUnavailable:
            filter_ = None  # the config has the reason
        place = [str(program.file), _PLACE]
        return config | {
            "program": program.program,
            "filter": filter_,
            "threads": THREADS,
            "file_mib": program.output_mib,
            "views": [*config["views"], place, *([str(path), str(path)] for path in program.needs)],
            "places": {**config["places"], "program": place},
        }


def _open_to_all(path: Path, spare: Path, mode: int) -> Path:
    """Return the path, or that of a copy of the file: after root is given up, one that is not open to all could not be used."""
    real = path.resolve()
    needed = mode & 0o005
    is_open = real.stat().st_mode & needed == needed and all(each.stat().st_mode & 0o001 for each in real.parents)
    # The launcher copies folders.
    if os.getuid() != 0 or real.is_dir() or is_open:
        return real
    spare.chmod(0o755)
    copy = spare / real.name
    shutil.copyfile(real, copy)
    copy.chmod(mode)
    return copy
