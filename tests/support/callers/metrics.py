"""The metrics of a process, as a test reads them."""

from __future__ import annotations

from kubevnfm_kit.metrics import Metrics


async def metrics_text(metrics: Metrics) -> str:
    """Return them in the text format of Prometheus."""
    body, _ = await metrics.text()
    return body.decode()
