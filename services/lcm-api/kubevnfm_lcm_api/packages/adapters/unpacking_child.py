"""The process that checks and unpacks packages, one after the other: started and ended by `unpacking_process`.

A request and its answer are each one JSON document (`kubevnfm_kit.child_main`).
"""

from __future__ import annotations

import traceback
from collections.abc import MutableMapping
from pathlib import Path
from typing import Any, Final

import structlog
from kubevnfm_csar.errors import ExternalMissing, PackageRefused
from kubevnfm_kit.child_main import limit_processor_time, serve
from kubevnfm_kit.json_types import JsonObject

from kubevnfm_lcm_api.packages.adapters.signatures import PackageSignatures
from kubevnfm_lcm_api.packages.adapters.unpacking import unpack
from kubevnfm_lcm_api.packages.adapters.unpacking_exchange import ANSWER_BYTES, Answer, Missing, Refusal, Request

_KEPT_KIB: Final = 256 * 1024
"""A process that once used more memory is not used again: Python does not return all of it."""


def main() -> None:
    """Serve requests until the parent closes the socket."""
    logged: list[JsonObject] = []

    def keep(_: object, level: str, entry: MutableMapping[str, Any]) -> str:
        logged.append({"level": level, **entry})
        raise structlog.DropEvent

    structlog.configure(processors=[keep])

    def answer(question: bytes) -> bytes:
        request = Request.model_validate_json(question)
        logged.clear()
        limit_processor_time(request.cpu_s)
        return _answer(request, logged)

    serve(answer)


def _answer(request: Request, logged: list[JsonObject]) -> bytes:
    try:
        signatures = PackageSignatures(anchors=request.anchors, is_required=request.is_signature_required)
        raw = _encoded(Answer(found=unpack(request.folder, signatures)), logged)
        if len(raw) > ANSWER_BYTES:
            raise PackageRefused(
                f"what is stored of its VNFD and its list of files has {len(raw)} bytes; {ANSWER_BYTES} are allowed"
            )
    except ExternalMissing as error:
        found = tuple(Missing(uri=one.uri, algorithm=one.algorithm, hash=one.hash) for one in error.missing)
        return _encoded(Answer(missing=found), logged)
    except PackageRefused as error:
        return _encoded(Answer(refused=Refusal(code=error.code, rule=error.rule, file=error.file)), logged)
    except OSError as error:
        return _encoded(Answer(disk=error.strerror or type(error).__name__), logged)
    except MemoryError:
        return _encoded(Answer(is_out_of_memory=True), logged)
    # The edge of this process: whatever a package causes is that package's failure, and the parent logs it.
    except Exception:  # noqa: BLE001
        return _encoded(Answer(bug=traceback.format_exc()), logged)
    return raw


def _encoded(answer: Answer, logged: list[JsonObject]) -> bytes:
    is_reusable = not answer.is_out_of_memory and not answer.bug and _peak_kib() < _KEPT_KIB
    return answer.model_copy(update={"logged": tuple(logged), "is_reusable": is_reusable}).model_dump_json().encode()


def _peak_kib() -> int:
    """Return the most memory that this process has had.

    Not that of getrusage(2): execve(2) keeps it, so it begins with that of the service, which may be more than the limit.
    """
    lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))


if __name__ == "__main__":
    main()
