"""The process that reads archives with charts, and makes packages of resource bundles: started and ended by `bundling_process`.

A request and its answer are each one JSON document (`kubevnfm_kit.child_main`).
"""

from __future__ import annotations

import traceback
from pathlib import Path

from kubevnfm_csar.bundles import BundleFacts, chart_in, lay_over, unpack_tar, write_package
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_kit.child_main import limit_processor_time, serve
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


def main() -> None:
    """Serve requests until the parent closes the socket."""
    serve(lambda question: _answer(Request.model_validate_json(question)).model_dump_json().encode())


def _answer(request: Request) -> Answer:
    limit_processor_time(request.cpu_s)
    try:
        return Answer(chart=_made(request))
    except PackageRefused as error:
        return Answer(refused=str(error))
    except OSError as error:
        return Answer(disk=error.strerror or type(error).__name__)
    except MemoryError:
        return Answer(is_out_of_memory=True)
    # The edge of this process: whatever an archive causes is that archive's failure, and the parent logs it.
    except Exception:  # noqa: BLE001
        return Answer(bug=traceback.format_exc())


def _made(request: Request) -> str:
    limits, folder = Limits(), request.scratch / "chart"
    unpack_tar(request.chart, folder, limits)
    chart = chart_in(folder, request.chart_name)
    if request.profile is not None:
        unpack_tar(request.profile, request.scratch / "profile", limits)
        lay_over(folder, chart, request.scratch / "profile")
    if request.facts is not None:
        write_package(folder, chart, request.facts, request.out)
    return chart


if __name__ == "__main__":
    main()
