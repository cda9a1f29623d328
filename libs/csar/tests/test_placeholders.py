"""The placeholders that clusterctl knows: which are filled in, and which are refused (capi.md CR-042)."""

from __future__ import annotations

import pytest
from kubevnfm_csar.placeholders import fill_in
from kubevnfm_kit.errors import InvalidInput

VALUES = {"LEVEL": "5", "EMPTY": "", "NET": '["10.0.0.0/8"]'}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("--v=${LEVEL}", "--v=5"),
        ("${LEVEL}${LEVEL:=2}", "55"),
        ("--v=${NONE:=2},a=${NONE:-false},b=${NONE=x}", "--v=2,a=false,b=x"),
        ("${EMPTY:=2}/${EMPTY}/${NONE:=}", "2//"),
        ("${NONE:=${LEVEL}}", "5"),
        ("${NONE:=a-${EMPTY:=b}-c}", "a-b-c"),
        ("cidrBlocks: ${NET}", 'cidrBlocks: ["10.0.0.0/8"]'),
        ('cidrBlocks: ${CIDR:=["192.168.0.0/16"]}', 'cidrBlocks: ["192.168.0.0/16"]'),
        ("$${LEVEL} $$ $LEVEL {LEVEL} $", "${LEVEL} $$ $LEVEL {LEVEL} $"),
        ("${NONE:=costs $5}", "costs $5"),
        ("", ""),
    ],
)
def test_placeholders_are_filled_in_as_clusterctl_does(text: str, expected: str) -> None:
    """CR-042: everywhere in the text; a default takes the place of a missing or empty value."""
    assert fill_in([("a.yaml", text)], VALUES) == [("a.yaml", expected)]


def test_all_variables_without_a_value_are_named_with_their_files() -> None:
    """CR-042: each once for each file."""
    with pytest.raises(InvalidInput) as refused:
        fill_in([("a.yaml", "${A} ${A}\n${B:=1}"), ("b.yaml", "${C:=${D}}"), ("c.yaml", "${LEVEL}")], VALUES)
    message = str(refused.value)
    assert message == (
        "additionalParams/capi/variables: a.yaml: no value for A, which has no default; "
        "b.yaml: no value for D, which has no default"
    )


@pytest.mark.parametrize(
    "text",
    [
        "${LEVEL^^}", "${LEVEL/5/6}", "${LEVEL:0:1}", "${#LEVEL}", "${LEVEL%5}", "${LEVEL:?none}", "${ LEVEL }", "${}",
        "${LEVEL", "${LEVEL:=a", "${1}", "${NONE:=" * 2000,
    ],
)  # fmt: skip
def test_other_forms_are_refused(text: str) -> None:
    """CR-042: with file and line, instead of a text that is applied as it is."""
    with pytest.raises(InvalidInput, match=r"a\.yaml: line 2: .* is not understood"):
        fill_in([("a.yaml", f"x: 1\ny: {text}\n")], VALUES)


def test_a_text_of_nothing_but_wrong_placeholders_is_refused_at_once() -> None:
    """CR-042: of 10 MiB, the largest manifest that is read, 20 errors are named."""
    with pytest.raises(InvalidInput) as refusal:
        fill_in([("a.yaml", "${\n" * (10 * 2**20 // 3))], VALUES)
    assert str(refusal.value).count("is not understood") == 20
    with pytest.raises(InvalidInput) as refusal:
        fill_in([("a.yaml", "".join(f"${{X{number}}}" for number in range(1000)))], VALUES)
    assert str(refusal.value).count("no value for") == 20
