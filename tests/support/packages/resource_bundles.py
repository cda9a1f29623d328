"""The content of resource bundles of ONAP: a chart, and a profile that is laid over it."""

from __future__ import annotations

import io
import tarfile
from collections.abc import Mapping
from typing import Final

CHART: Final = {
    "vfw/Chart.yaml": "{apiVersion: v2, name: vfw, version: 1.0.0}\n",
    "vfw/values.yaml": "{image: {tag: '1.0'}}\n",
    "vfw/templates/a.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n",
}
PROFILE: Final = {
    "manifest.yaml": "version: v1\ntype:\n  values: over.yaml\n  configresource: [{filepath: c.txt, chartpath: vfw/c.txt}]\n",
    "over.yaml": "{image: {tag: '2.0'}}\n",
    "c.txt": "hello\n",
}


def packed(files: Mapping[str, str]) -> bytes:
    """Return a tar.gz."""
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w:gz") as archive:
        for name, text in files.items():
            member = tarfile.TarInfo(f"./{name}")
            member.size = len(text)
            archive.addfile(member, io.BytesIO(text.encode()))
    return out.getvalue()
