"""Regular expressions of monitoring systems.

They come from outside, and Python's own engine would let one hold the event loop for ever. The engine here needs time in
proportion to the text, and the size of an expression's automaton is limited; it is the one of Rust, which the library for JSON
Schemas has. It has neither look-arounds nor references back to groups.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

LONGEST: Final = 1000
"""Characters of an expression."""
_MOST_BYTES: Final = 2**18


def beginning(pattern: str) -> Callable[[str], bool]:
    """Return whether a text begins with what the expression describes, as Python's ``re.match`` finds it.

    Raises ValueError for an expression that cannot be used; the text says why.
    """
    # Most gateways never get one, and do without its memory.
    from jsonschema_rs import RegexOptions, ValidationError, validator_for

    if len(pattern) > LONGEST:
        raise ValueError(f"a regular expression of at most {LONGEST} characters expected")
    options = RegexOptions(size_limit=_MOST_BYTES, dfa_size_limit=_MOST_BYTES)
    try:
        # By itself, too: a bracket that it closes before it opens one would end ours.
        validator_for({"pattern": pattern}, pattern_options=options)
        return validator_for({"pattern": f"^(?:{pattern})"}, pattern_options=options).is_valid
    except ValidationError as error:
        raise ValueError(
            "a regular expression of limited size, without look-arounds and references to groups, expected"
        ) from error
