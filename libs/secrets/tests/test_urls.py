"""URLs with a login or a token."""

from __future__ import annotations

from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from kubevnfm_secrets import MASK, shown_url


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://nfvo.example/callback", "https://nfvo.example/callback"),
        ("HTTP://Nfvo.example:80/a//b/%7Ec?", "HTTP://Nfvo.example:80/a//b/%7Ec?"),
        ("https://nfvo.example/c?token=t0ps3cret&site=a", "https://nfvo.example/c?token=***&site=***"),
        ("https://nfvo.example/c?t0ps3cret", "https://nfvo.example/c?***"),
        ("https://nfvo.example/c?dG9wczNjcmV0==&a=", "https://nfvo.example/c?***&***"),
        ("https://user:t0ps3cret@nfvo.example/c", "https://***@nfvo.example/c"),
        ("https://a@t0ps3cret@[::1]:8/c", "https://***@[::1]:8/c"),
        ("https://nfvo.example/c#t0ps3cret", "https://nfvo.example/c#***"),
        ("https://[t0ps3cret/c", MASK),
    ],
)
def test_the_parts_that_may_be_secret_are_not_shown(url: str, shown: str) -> None:
    assert shown_url(url) == shown
    assert shown_url(shown) == shown, "what is shown can be read and shown again"


TOKENS = st.text(st.sampled_from("aB3=&;%+/?#@:"), max_size=30)


@given(TOKENS)
@example("t=a?b=c")
def test_of_a_query_only_names_are_shown(query: str) -> None:
    shown = shown_url(f"https://nfvo.example/c?{query}")
    values = [piece.partition("=")[2] for piece in urlsplit(shown).query.split("&")]
    assert set(values) <= {"", MASK}
    assert shown_url(shown) == shown
