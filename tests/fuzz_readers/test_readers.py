"""Readers of foreign input refuse or read anything: no other exception, at most 2 s of processor time and 256 MiB an input.

`make test` tries the same few inputs each time; `make fuzz-readers` tries others for KUBEVNFM_FUZZ_SECONDS with each reader.
"""

from __future__ import annotations

import os
import secrets
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest
from fuzzed.readers import CORPUS, readers
from fuzzed.trials import fault_of, run

SECONDS: Final = float(os.environ.get("KUBEVNFM_FUZZ_SECONDS", "0"))
"""With each reader; 0 means a few inputs, the same each time."""
FEW: Final = 15
READERS: Final = readers()
FOUND: Final = sorted(path.relative_to(CORPUS).as_posix() for path in CORPUS.glob("*/*"))

pytestmark = pytest.mark.timeout(1800 + 2 * SECONDS)


@pytest.mark.skipif(SECONDS > 0, reason="make fuzz-readers does more")
@pytest.mark.parametrize("name", READERS)
def test_a_few_inputs_are_stood(name: str) -> None:
    assert run(READERS[name], seconds=0, seed=1, examples=FEW)


@pytest.mark.parametrize("found", FOUND)
def test_what_was_found_once_is_stood(found: str) -> None:
    assert fault_of(READERS[found.partition("/")[0]], (CORPUS / found).read_bytes()) == ""


@pytest.mark.skipif(SECONDS == 0, reason="make fuzz-readers does it")
@pytest.mark.parametrize("name", READERS)
def test_inputs_are_stood_for_long(name: str, tmp_path: Path) -> None:
    last = tmp_path / "last"
    seed = secrets.randbelow(2**31)
    command = [sys.executable, "-m", "fuzzed", name, str(SECONDS), str(seed), str(last)]
    support = Path(__file__).parents[1] / "support"
    ended = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, check=False, env={**os.environ, "PYTHONPATH": str(support)}
    )
    assert ended.returncode == 0, f"status {ended.returncode}, the last input is {last}\n{ended.stdout[-5000:]}"
