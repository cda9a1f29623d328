"""The process that compares values with schemas, started and ended by `schema_process`."""

from __future__ import annotations

import json

from kubevnfm_kit.child_main import limit_processor_time, serve

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


if __name__ == "__main__":
    serve(answer)
