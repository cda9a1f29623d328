"""Writes the definitions of the broker to a file: ``python -m kubevnfm_bus FILE``."""

from __future__ import annotations

import argparse
from pathlib import Path

from kubevnfm_bus.definitions import text

parser = argparse.ArgumentParser(prog="python -m kubevnfm_bus", description=__doc__)
parser.add_argument("file", type=Path)
parser.parse_args().file.write_text(text(), encoding="utf-8")
