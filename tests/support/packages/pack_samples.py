"""Packs sample VNF packages into ``.run/samples``: ``pack_samples.py NAME ...``.

One process packs them all: its start takes ten times as long as to pack one.
"""

from __future__ import annotations

import sys

from kubevnfm_csar.pack import main

if __name__ == "__main__":
    sys.exit(any(main([f"deploy/samples/{name}", f".run/samples/{name}.zip"]) for name in sys.argv[1:]))
