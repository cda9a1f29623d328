"""The command line's one reader and one writer of YAML."""

from __future__ import annotations

from typing import Any, Final

import yaml

from kubevnfm_cli.faults import Fault
from kubevnfm_cli.yaml_reader import YamlRefused, read_yaml

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


def read_documents(text: str, source: str) -> list[Any]:
    """Return the documents of a YAML text with the scalars of YAML 1.2. Raises Fault with file, line and column."""
    try:
        return [document.value for document in read_yaml(text)]
    except YamlRefused as error:
        place = f"{source}:{error.line}:{error.column}" if error.line else source
        raise Fault(f"{place}: {error.problem}") from None


def write(value: object) -> str:
    """Return a value as YAML, in which texts keep their meaning for readers of YAML 1.1 and 1.2."""
    return str(
        yaml.dump(value, Dumper=_DUMPER, sort_keys=False, allow_unicode=False, width=120, default_flow_style=False)
    )
