"""The process that reads archives with charts, and makes packages of resource bundles: started and ended by `bundling_process`.

A request and its answer are each one JSON document (`kubevnfm_kit.child_main`).
"""

from __future__ import annotations

import traceback

from kubevnfm_csar.bundles import chart_in, lay_over, unpack_tar, write_package
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_kit.child_main import limit_processor_time, serve

from kubevnfm_lcm_api.packages.adapters.bundling_exchange import Answer, Request


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
