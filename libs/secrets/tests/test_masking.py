"""A mask finds the secrets of a text in every form that programs write them in."""

from __future__ import annotations

import json
import re
import time
from base64 import b64decode, b64encode
from random import choices
from string import ascii_letters
from textwrap import wrap
from urllib.parse import quote

import pytest
from kubevnfm_secrets import Mask


def test_a_secret_is_masked_wherever_it_stands() -> None:
    assert Mask(["s3cret"])("a s3cret, (s3crets3cret)") == "a ***, (******)"


def test_the_longer_of_two_secrets_is_masked_whole() -> None:
    assert Mask(["pass", "password-2"])("password-2 pass") == "*** ***"


def test_the_password_of_a_url_is_masked_alone_too() -> None:
    mask = Mask(["http://user:p%40ss@proxy:3128"])
    assert mask("Proxy http://user:p%40ss@proxy:3128, user, p%40ss, p@ss") == "Proxy ***, user, ***, ***"


def test_each_line_of_a_key_is_masked() -> None:
    assert Mask(["-----KEY-----\nAAAABBBB\n"])("x AAAABBBB") == "x ***"


def test_a_secret_of_three_letters_hides_no_ordinary_word() -> None:
    mask = Mask(["the", "a1", ""])
    assert mask("the other, bother: the end, 1the1 a1") == "the other, bother: the end, 1the1 a1"
    assert mask('password=the "admin_pass": "the", --db-pwd a1, color=the') == (
        'password=*** "admin_pass": "***", --db-pwd ***, color=the'
    )


def test_the_time_for_a_line_grows_with_its_length_and_not_with_its_square() -> None:
    """A line of a machine that holds the event loop for minutes holds all operations."""
    mask = Mask(["the"])
    before = time.process_time()
    for line in ("x" * 200_000, "x-" * 100_000, "x " * 100_000):
        assert mask(line) == line
    assert mask("x" * 200_000 + " password=the").endswith(" password=***")
    assert time.process_time() - before < 4, "it takes far below 1 s"


def test_a_secret_of_few_letters_is_masked_as_a_word_only() -> None:
    assert Mask(["pass"])("pass passed bypass (pass) x_pass") == "*** passed bypass (***) x_***"


@pytest.mark.parametrize("before", ["", "a", "ab", "user:", "é"])
@pytest.mark.parametrize("after", ["", "z", "\n", "@host"])
def test_base64_of_a_secret_is_masked_wherever_it_is_in_the_text(before: str, after: str) -> None:
    encoded = b64encode(f"{before}s3cr?t>word{after}".encode()).decode()
    for text in (encoded, encoded.rstrip("="), encoded.replace("+", "-").replace("/", "_")):
        masked = Mask(["s3cr?t>word"])(f"Authorization: Basic {text} end")
        assert "***" in masked
        assert masked.endswith(" end")
        padded = re.sub("[^A-Za-z0-9+/]", "", masked.split()[2].replace("-", "+").replace("_", "/"))
        assert b"cr?t" not in b64decode(padded + "=" * (-len(padded) % 4) if len(padded) % 4 != 1 else "")


def test_wrapped_base64_of_a_long_secret_is_masked() -> None:
    key = "-----BEGIN KEY-----\n" + "\n".join("".join(choices(ascii_letters, k=64)) for _ in range(8)) + "\n"
    mask = Mask([key])
    for width in (32, 64, 76):
        for line in wrap(b64encode(key.encode()).decode(), width)[:-1]:
            assert mask(f"  data: {line}") == "  data: ***"


def test_other_base64_stays() -> None:
    text = b64encode(b"not the secret of this phase, but another text").decode()
    assert Mask(["s3cret-password"])(text) == text


@pytest.mark.parametrize(
    "text",
    [
        json.dumps({"key": 'ab"c\\d\nsecond é line'}),
        json.dumps({"key": 'ab"c\\d\nsecond é line'}, ensure_ascii=False),
        quote('ab"c\\d\nsecond é line'),
        quote('ab"c\\d\nsecond é line', safe=""),
    ],
)
def test_escaped_forms_of_a_secret_are_masked(text: str) -> None:
    masked = Mask(['ab"c\\d\nsecond é line'])(text)
    assert "***" in masked
    assert not {"second", "ab"} & set(re.findall("[a-z]+", masked))


def test_a_secret_with_a_quote_is_masked_as_shells_write_it() -> None:
    assert Mask(["it's-a-secret"])("+ echo 'it'\"'\"'s-a-secret'") == "+ echo '***'"


def test_masking_a_kubeconfig_takes_no_time_that_holds_others() -> None:
    """A pattern of all lines and forms of the three certificates took most of a second at each further secret."""
    lines = ["".join(choices(ascii_letters, k=64)) for _ in range(150)]
    before = time.process_time()
    mask = Mask(["\n".join(lines)])
    for line in lines:
        mask.add(line[::-1])
        assert mask(f"x {line} {line[::-1]} y") == "x *** *** y"
    assert time.process_time() - before < 4, "it takes far below 1 s"


def test_join_tokens_of_any_origin_are_masked() -> None:
    assert Mask()("kubeadm join --token abcdef.0123456789abcdef") == "kubeadm join --token ***"


def test_a_secret_that_is_added_later_is_masked_from_then_on() -> None:
    mask = Mask()
    mask.add("later-secret")
    assert mask("later-secret") == "***"
