"""The command line's one reader and one writer of YAML."""

from __future__ import annotations

from typing import Any, Final

import yaml

from kubevnfm_cli.faults import UsageFault
from kubevnfm_cli.terminal import is_harmless
from kubevnfm_cli.yaml_reader import YamlRefused, plain_value, read_yaml

_DUMPER: Final = getattr(yaml, "CSafeDumper", yaml.SafeDumper)


class _Dumper(_DUMPER):  # type: ignore[misc, valid-type]  # the one of libyaml, where it is there
    """Quotes texts that YAML 1.2 reads as numbers; PyYAML quotes those of YAML 1.1."""


def _text(dumper: yaml.SafeDumper, text: str) -> yaml.Node:
    try:
        is_text = not text or isinstance(plain_value(text), str)
    except ValueError:  # a number that is too long to be read
        is_text = False
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=None if is_text else "'")


_Dumper.add_representer(str, _text)


def read_documents(text: str, source: str) -> list[Any]:
    """Return the documents of a YAML text with the scalars of YAML 1.2. Raises UsageFault with file, line and column."""
    try:
        return [document.value for document in read_yaml(text)]
    except YamlRefused as error:
        place = f"{source}:{error.line}:{error.column}" if error.line else source
        raise UsageFault(f"{place}: {error.problem}") from None


def write(value: object) -> str:
    """Return a value as YAML, in which texts keep their meaning for readers of YAML 1.1 and 1.2."""
    written = _written(value, is_ascii=False)
    # YAML has escapes for what can control a terminal, but PyYAML writes some of it as it is.
    return written if is_harmless(written) else _written(value, is_ascii=True)


def _written(value: object, *, is_ascii: bool) -> str:
    return str(
        yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, allow_unicode=not is_ascii, width=120, default_flow_style=False
        )
    )
