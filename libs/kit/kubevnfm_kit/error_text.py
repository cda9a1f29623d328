"""The length of what errors say: their texts are stored, published and logged, and may quote what foreign code has written."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator

ERROR_BYTES: Final = 4096
"""Longest text of an error, in bytes as UTF-8. The whole output of a script is in the log of its operation."""


def bounded(text: str, most: int = ERROR_BYTES) -> str:
    """Return the text, or its beginning with a remark if it is longer than ``most`` bytes as UTF-8; no character is split.

    Secrets are masked before: a part of one would not be found any more. Only the end is cut, because the beginning of an error
    is ours, and what it quotes could otherwise lose the mark of a quotation.
    """
    # A character has at most four bytes.
    if len(text) * 4 <= most:
        return text
    raw = text.encode(errors="replace")
    if len(raw) <= most:
        return text
    remark = f" [cut: {len(raw)} bytes]"
    return raw[: most - len(remark)].decode(errors="ignore") + remark


_LOGIN: Final = re.compile(r"""(?<=://)(?:[^\s/:@"'<>]{0,300}:[^\s"'<>]{0,300}|[^\s/"'<>]{1,300})(?=@)""")
"""User and password in a URL. Passwords with ``/`` or ``@`` are in no valid one; it is the texts about such that are logged."""


def without_logins(text: str) -> str:
    """Return the text without the users and passwords in its URLs."""
    return _LOGIN.sub("***", text) if "://" in text and "@" in text else text


ErrorText = Annotated[str, AfterValidator(bounded)]
"""A field of a document or message that says what went wrong, or how far work has come."""
