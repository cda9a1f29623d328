"""When a threshold is crossed: hysteresis (SOL003 clause 6.5.3.4). Pure."""

from __future__ import annotations

from kubevnfm_sol.performance import CrossingDirection


def side(value: float, *, threshold: float, hysteresis: float) -> CrossingDirection | None:
    """Return on which side of a threshold a value is; None: so near that the side stays the one it was."""
    # UP first: without hysteresis the threshold itself is reached from both sides.
    if value >= threshold + hysteresis:
        return "UP"
    return "DOWN" if value <= threshold - hysteresis else None


def crossing(before: CrossingDirection | None, now: CrossingDirection | None) -> CrossingDirection | None:
    """Return the direction in which a threshold was crossed; None: it was not.

    A value that is below when it is measured for the first time has crossed nothing.
    """
    if now is None or now == before or (before is None and now == "DOWN"):
        return None
    return now
