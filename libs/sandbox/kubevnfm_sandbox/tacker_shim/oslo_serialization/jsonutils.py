"""``from oslo_serialization import jsonutils``: Python's own JSON."""

from json import dump, load  # noqa: F401
from json import dumps as _dumps
from json import loads as _loads


def dumps(obj, default=str, **kwargs):
    return _dumps(obj, default=default, **kwargs)


def loads(text, encoding="utf-8", **kwargs):
    return _loads(text.decode(encoding) if isinstance(text, bytes) else text, **kwargs)
