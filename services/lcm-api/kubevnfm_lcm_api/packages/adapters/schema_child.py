"""The process that compares values with schemas, started and ended by `schema_process`."""

from __future__ import annotations

import json

from kubevnfm_kit.child_main import close_output, limit_processor_time, serve

from kubevnfm_lcm_api.packages.adapters.schema_rules import NoSchema, violations


def answer(question: bytes) -> bytes:
    """Return what is wrong with the values of a question, or with its schema."""
    # Our own parent has written it.
    asked = json.loads(question)
    limit_processor_time(asked["cpu_s"])
    try:
        return json.dumps({"violations": violations(asked["schema"], asked["values"], asked["most"])}).encode()
    except NoSchema as error:
        return json.dumps({"refused": str(error)}).encode()
    # The edge of this process. Its text may have values, so the parent gets its class alone.
    except Exception as error:  # noqa: BLE001
        return json.dumps({"failed": type(error).__name__}).encode()


if __name__ == "__main__":
    close_output()
    serve(answer)
