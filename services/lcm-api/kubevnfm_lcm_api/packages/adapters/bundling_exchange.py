"""The requests to the process that makes packages of bundles, and its answers: apart from its work, as in `unpacking_exchange`."""

from __future__ import annotations

from pathlib import Path

from kubevnfm_csar.bundle_facts import BundleFacts
from pydantic import BaseModel, ConfigDict


class Request(BaseModel):
    """A chart to read, and to make a package of."""

    model_config = ConfigDict(frozen=True)

    chart: Path
    """A tar.gz with the chart."""
    chart_name: str = ""
    """Its folder there; empty: the first one."""
    profile: Path | None = None
    """A tar.gz with what is put over it."""
    scratch: Path
    """An empty folder for this request."""
    out: Path
    facts: BundleFacts | None = None
    """Those of the package; None: the chart is checked, and no package is made."""
    cpu_s: int


class Answer(BaseModel):
    """The result: exactly one of its members."""

    model_config = ConfigDict(frozen=True)

    chart: str = ""
    """The name of the chart's folder."""
    refused: str = ""
    disk: str = ""
    """An error of the disk."""
    is_out_of_memory: bool = False
    bug: str = ""
    """A traceback."""
