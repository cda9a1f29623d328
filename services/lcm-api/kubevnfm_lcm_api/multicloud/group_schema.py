"""The description of the member ``regions`` of a request: its two forms are read one by one, so that each fault has its pointer."""

from __future__ import annotations

from typing import Any, Final

MOST_REGIONS: Final = 500
REGIONS_SCHEMA: Final[dict[str, Any]] = {
    "description": f"1 to {MOST_REGIONS} regions, or a selector, in place of cloud_region_id",
    "oneOf": [
        {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["cloud_region_id"],
                "properties": {"cloud_region_id": {"type": "string"}, "values": {"type": "object"}},
            },
        },
        {
            "type": "object",
            "required": ["selector"],
            "properties": {
                "selector": {
                    "type": "object",
                    "properties": {
                        "match_labels": {"type": "object", "additionalProperties": {"type": "string"}},
                        "match_expressions": {"type": "array", "items": {"type": "object"}},
                        "features": {"type": "array", "items": {"type": "object"}},
                    },
                }
            },
        },
    ],
}
