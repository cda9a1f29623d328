"""The command line's one reader and one writer of YAML.

`kubevnfm_kit.foreign_yaml` is not used: its distribution brings the libraries of the services, which this wheel does without.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml

from kubevnfm_cli.faults import Fault

MOST_BYTES: Final = 8 << 20
_MOST_NODES: Final = 200_000
_MOST_DEPTH: Final = 64
_LOADER: Final = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)
_STR: Final = "tag:yaml.org,2002:str"
_OWN: Final = frozenset(
    f"tag:yaml.org,2002:{name}" for name in ("int", "float", "bool", "null", "timestamp", "value", "merge")
)
_WORDS: Final = {"": None, "~": None, "null": None, "Null": None, "NULL": None} | {
    spelled: word == "true" for word in ("true", "false") for spelled in (word, word.title(), word.upper())
}
_INTEGER: Final = re.compile(r"[-+]?[0-9]{1,100}|0x[0-9a-fA-F]{1,100}|0o[0-7]{1,100}")
_FLOAT: Final = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")


def read_documents(text: str, source: str) -> list[Any]:
    """Return the documents of a YAML text with the scalars of YAML 1.2. Raises Fault with file, line and column."""
    if len(text) > MOST_BYTES:
        raise Fault(f"{source}: at most {MOST_BYTES >> 20} MiB expected")
    reading = _Reading(source)
    try:
        nodes = list(yaml.compose_all(text, Loader=_LOADER))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        place = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark is not None else source
        raise Fault(f"{place}: {getattr(error, 'problem', None) or error}") from error
    except RecursionError:
        raise Fault(f"{source}: nested deeper than {_MOST_DEPTH}") from None
    return [reading.value(node, 0) for node in nodes]


def write(value: object) -> str:
    """Return a value as YAML, in which texts keep their meaning for readers of YAML 1.1 and 1.2."""
    return str(
        yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=False, width=120, default_flow_style=False)
    )


class _Reading:
    """One text: its bounds count over all documents."""

    def __init__(self, source: str) -> None:
        self._source = source
        self._seen = 0

    def value(self, node: yaml.Node, depth: int) -> Any:
        self._seen += 1
        if self._seen > _MOST_NODES:
            raise self._fault(node, f"more than {_MOST_NODES} values, aliases included")
        if depth > _MOST_DEPTH:
            raise self._fault(node, f"nested deeper than {_MOST_DEPTH}")
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if isinstance(node, yaml.SequenceNode):
            return [self.value(one, depth + 1) for one in node.value]
        assert isinstance(node, yaml.MappingNode)
        read: dict[str, Any] = {}
        for key, value in node.value:
            name = self._key(key)
            if name in read:
                raise self._fault(key, f"{name!r} is there twice")
            read[name] = self.value(value, depth + 1)
        return read

    def _key(self, node: yaml.Node) -> str:
        if not isinstance(node, yaml.ScalarNode):
            raise self._fault(node, "a name expected as key")
        return str(node.value)

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        text = str(node.value)
        if node.tag not in _OWN and node.tag != _STR:
            raise self._fault(node, f"tag {node.tag[:60]!r} is not expected")
        if node.style:  # in quotes, or a block
            return text
        if text in _WORDS:
            return _WORDS[text]
        if _INTEGER.fullmatch(text):
            return int(text, 0 if text[:2] in ("0x", "0o") else 10)
        if _FLOAT.fullmatch(text):
            return float(re.sub(r"\.(inf|nan)", r"\1", text.lower()))
        return text

    def _fault(self, node: yaml.Node, text: str) -> Fault:
        return Fault(f"{self._source}:{node.start_mark.line + 1}:{node.start_mark.column + 1}: {text}")
