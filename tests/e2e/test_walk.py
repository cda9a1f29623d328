"""The walk of docs/walk-cli.md: a person with an empty gateway, a lab and the command line."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest
from clouds.lab_process import LabControl, LabProcess
from servers.installations import SingleInstallation

ROOT: Final = Path(__file__).parents[2]
PAGE: Final = ROOT / "docs/walk-cli.md"
CHANGES: Final = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}|\d{4}-\d\d-\d\dT[\d:.]+Z|\b\d+(\.\d+)?s\b")


@dataclass
class Typed:
    """A command of the page, and what the page shows of its output."""

    line: int
    text: str
    shown: list[str] = field(default_factory=list)

    @property
    def code(self) -> int:
        found = re.search(r"# exit code (\d)$", self.text, re.MULTILINE)
        return int(found.group(1)) if found else 0


def typed() -> Iterator[Typed]:
    command: Typed | None = None
    for number, line in enumerate(PAGE.read_text(encoding="utf-8").splitlines(), 1):
        if line.startswith("    $ "):
            if command:
                yield command
            command = Typed(number, line[6:])
        elif command and line.startswith("    > "):
            command.text += f"\n{line[6:]}"
        elif command and line.startswith("    "):
            command.shown.append(line)
        elif command:
            yield command
            command = None
    if command:
        yield command


def plain(text: str) -> str:
    """Return a text without what differs each time: ids, times, widths of columns."""
    return " ".join(CHANGES.sub("*", text).split())


@pytest.mark.deep
async def test_each_command_of_the_walk_does_what_the_page_shows(
    lab_process: LabProcess, lab: LabControl, tmp_path: Path
) -> None:
    """Each command has its exit code, and each line that the page shows is in its output."""
    commands = list(typed())
    assert len(commands) > 30
    installation = SingleInstallation(tmp_path, lab_process)
    installation.start()
    try:
        # One shell, as a person has it: variables stay.
        script = "".join(
            f"{{ {one.text}\n}} 2>&1\ncode=$?; printf '\\n#%s %s\\n' {one.line} $code; [ $code = {one.code} ] || exit 9\n"
            for one in commands
        )
        async with lab.quota(instances=-1):
            shell = await asyncio.create_subprocess_exec(
                "bash", "-c", script, cwd=ROOT, stdout=asyncio.subprocess.PIPE, start_new_session=True,
                env={
                    "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
                    "HOME": str(tmp_path),
                    "LANG": "C.UTF-8",
                    "KUBEVNFM_URL": installation.url,
                    "LAB_AUTH_URL": str(lab_process.endpoints["auth_url"]),
                    "LAB_CONTROL": lab_process.control_url,
                    "LAB_PASSWORD": lab_process.vim_password,
                    "MACHINE_PASSWORD": lab_process.machine_password,
                },
            )  # fmt: skip
            try:
                out = (await asyncio.wait_for(shell.communicate(), 600))[0].decode()
            finally:
                if shell.returncode is None:
                    os.killpg(shell.pid, signal.SIGKILL)
    finally:
        installation.stop()
    assert shell.returncode == 0, out
    said = dict(zip([one.line for one in commands], re.split(r"\n#\d+ \d\n", out), strict=False))
    for one in commands:
        for line in one.shown:
            assert plain(line) in plain(said[one.line]), (one.text, said[one.line])
    assert lab_process.vim_password not in out
    assert lab_process.machine_password not in out
