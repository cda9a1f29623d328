"""Filters as SOL013 writes them, and what is refused, with the place."""

from __future__ import annotations

import pytest
from kubevnfm_lcm_api.http.sol013.filters import InvalidFilter, parse_filter
from kubevnfm_lcm_api.lifecycle.http.shapes import INSTANCE_V2, OCCURRENCE_V2
from kubevnfm_store.query import AllOf, AnyOf, Compare, Element, HasKey, Op, names_of


def one(text: str) -> object:
    return parse_filter(text, INSTANCE_V2)


@pytest.mark.parametrize("op", ["eq", "neq", "gt", "lt", "gte", "lte"])
def test_each_single_valued_operator(op: str) -> None:
    assert one(f"({op},vnfdId,abc)") == Compare("vnfdId", Op(op), ["abc"])


@pytest.mark.parametrize("op", ["in", "nin", "cont", "ncont"])
def test_each_many_valued_operator(op: str) -> None:
    found = one(f"({op},vnfInstanceName,a,b)")
    assert isinstance(found, Compare)
    assert (found.op, list(found.values)) == (Op(op), ["a", "b"])


def test_expressions_are_joined_by_and() -> None:
    found = one("(eq,vnfdId,a);(eq,instantiationState,INSTANTIATED)")
    assert found == AllOf([Compare("vnfdId", Op.EQ, ["a"]), Compare("instantiationState", Op.EQ, ["INSTANTIATED"])])


def test_quoted_values_hold_any_character() -> None:
    assert one("(eq,vnfInstanceName,'it''s, (fine);')") == Compare("vnfInstanceName", Op.EQ, ["it's, (fine);"])


def test_expressions_through_one_array_meet_in_one_element() -> None:
    info = "instantiatedVnfInfo/vnfcResourceInfo"
    found = one(f"(eq,{info}/vduId,worker);(eq,{info}/computeResource/resourceId,s1)")
    assert found == Element(
        info, AllOf([Compare("vduId", Op.EQ, ["worker"]), Compare("computeResource/resourceId", Op.EQ, ["s1"])])
    )


def test_map_keys_are_matched_by_at_key() -> None:
    assert one("(eq,vimConnectionInfo/@key,vim1)") == HasKey("vimConnectionInfo", ("vim1",))
    assert one("(eq,vimConnectionInfo/vim1/vimId,x)") == Compare("vimConnectionInfo/vim1/vimId", Op.EQ, ["x"])


def test_tilde_escapes_in_names() -> None:
    found = one("(cont,metadata/a~1b~ac~0~b,x)")
    assert isinstance(found, Compare)
    assert names_of(found.path) == ["metadata", "a/b,c~@"]


def test_free_values_are_compared_by_the_stored_type() -> None:
    found = one("(eq,metadata/n,5)")
    assert found == AnyOf([Compare("metadata/n", Op.EQ, ["5"]), Compare("metadata/n", Op.EQ, [5.0])])


def test_times_are_compared_as_times() -> None:
    found = parse_filter("(gt,startTime,2026-11-20T13:00:00+01:00)", OCCURRENCE_V2)
    assert found == Compare("startTime", Op.GT, ["2026-11-20T12:00:00.000Z"])


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("vnfdId", "( expected, at character 1"),
        ("(eq,vnfdId,a", ") expected"),
        ("(eq,vnfdId)", "operator, attribute and value"),
        ("(is,vnfdId,a)", "operator is is unknown"),
        ("(eq,vnfdId,a,b)", "exactly one value"),
        ("(eq,nothing,a)", "attribute nothing is unknown"),
        ("(eq,instantiatedVnfInfo,a)", "no simple value"),
        ("(eq,vnfdId,a)x", "; or the end expected, at character 14"),
        ("(eq,vnfInstanceName,'a)", "closing quote"),
        ("(eq,vimConnectionInfo/v/accessInfo/username,a)", "secret"),
        ("(eq,metadata/password,a)", "secret"),
        (";".join(["(eq,vnfdId,a)"] * 21), "at most 20 expressions"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, reason: str) -> None:
    with pytest.raises(InvalidFilter) as caught:
        one(text)
    assert reason in str(caught.value)


def test_a_value_that_does_not_convert_is_refused() -> None:
    with pytest.raises(InvalidFilter, match="true or false"):
        parse_filter("(eq,isCancelPending,perhaps)", OCCURRENCE_V2)
    with pytest.raises(InvalidFilter, match="date-time"):
        parse_filter("(eq,startTime,yesterday)", OCCURRENCE_V2)
