"""The values of a Secret, which no message shows."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

from kubevnfm_infra_k8s.domain.objects import Body


def values_of(secret: Body) -> Iterator[str]:
    """Yield the values of a Secret, as they are written and without base64."""
    found: list[Any] = [secret.get("data"), secret.get("stringData")]
    while found:
        each = found.pop()
        if isinstance(each, Mapping):
            found += each.values()
        elif isinstance(each, list):
            found += each
        elif each is not None:
            text = str(each)
            yield text
            with suppress(ValueError):
                yield base64.b64decode(text, validate=True).decode()
