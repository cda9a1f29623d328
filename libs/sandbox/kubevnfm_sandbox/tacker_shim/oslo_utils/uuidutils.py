"""Identifiers."""

import uuid


def generate_uuid(dashed=True):
    found = uuid.uuid4()
    return str(found) if dashed else found.hex


def is_uuid_like(value):
    try:
        return str(uuid.UUID(value)).replace("-", "") == str(value).replace("-", "").lower()
    except (AttributeError, TypeError, ValueError):
        return False
