"""A script of a package changes no VIM of its instance; it may only say which cluster it has built."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from typing import Any

import pytest
from kubevnfm_mgmt_executor.domain.scripts import read_answer
from kubevnfm_secrets import KeyRing

RING = KeyRing([bytes(32)])
VIMS = "vimConnectionInfo"
GIVEN: dict[str, Any] = {
    "operation": "instantiate_end",
    "request": {VIMS: {"site": {"vimId": "vim-2", "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3"}}},
    "vnf_instance": {
        "id": "inst-1",
        VIMS: {
            "site": {
                "vimId": "vim-1",
                "vimType": "ETSINFV.OPENSTACK_KEYSTONE.V_3",
                "interfaceInfo": {"endpoint": "https://keystone.example/v3"},
                "accessInfo": {"username": "nfv", "project": "nfv"},
            },
            "edge": {"vimId": "vim-own", "vimType": "ETSINFV.KUBERNETES.V_1", "extra": {"created_by": "inst-1"}},
        },
    },
}
Change = Callable[[dict[str, Any]], object]


def answered(change: Change, *, vim_id: str | None = None) -> list[tuple[tuple[str, ...], dict[str, object]]]:
    """Return the edits of a script that makes a change to the entries."""
    instance = deepcopy(GIVEN["vnf_instance"])
    change(instance)
    found = read_answer({"vnf_instance": instance}, GIVEN, RING, marked=frozenset(), vim_id=vim_id)
    return [(edit.path, edit.change) for edit in found.edits]


def entry(**values: Any) -> dict[str, Any]:
    return {"vimType": "ETSINFV.KUBERNETES.V_1", **values}


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (
            lambda vnf: vnf[VIMS]["site"]["interfaceInfo"].update(endpoint="https://attacker.example"),
            "vimConnectionInfo/site/interfaceInfo/endpoint",
        ),
        (
            lambda vnf: vnf[VIMS]["site"]["accessInfo"].update(username="admin"),
            "vimConnectionInfo/site/accessInfo/username",
        ),
        (lambda vnf: vnf[VIMS]["site"].update(vimId="vim-of-others"), "vimConnectionInfo/site/vimId"),
        (lambda vnf: vnf[VIMS].update(site=entry(vimId="vim-of-others")), "vimConnectionInfo/site"),
        (lambda vnf: vnf[VIMS]["site"].update(extra={"created_by": "inst-1"}), "vimConnectionInfo/site/extra"),
        (lambda vnf: vnf[VIMS].pop("site"), "vimConnectionInfo/site"),
        (lambda vnf: vnf.pop(VIMS), "vimConnectionInfo"),
        (lambda vnf: vnf[VIMS].update(edge=None), "vimConnectionInfo/edge"),
        (
            lambda vnf: vnf[VIMS]["edge"].update(interfaceInfo={"endpoint": "https://attacker.example"}),
            "vimConnectionInfo/edge/interfaceInfo",
        ),
        (lambda vnf: vnf[VIMS].update(more=entry(vimId="vim-of-others")), "vimConnectionInfo/more/vimId"),
        (lambda vnf: vnf[VIMS].update(more=entry(vim_id="vim-of-others")), "vimConnectionInfo/more/vimId"),
    ],
)
def test_an_entry_stays_as_it_is_and_a_vim_of_others_is_refused_by_name(change: Change, field: str) -> None:
    with pytest.raises(ValueError, match="vnf_instance") as refused:
        answered(change)
    assert field in str(refused.value)


@pytest.mark.parametrize(
    ("change", "vim_id", "paths"),
    [
        (lambda vnf: vnf[VIMS].pop("edge"), None, [(VIMS, "edge")]),
        (lambda vnf: vnf[VIMS].update(more=entry(interfaceInfo={"endpoint": "https://c"})), None, [(VIMS, "more")]),
        (lambda vnf: vnf[VIMS].update(more=entry(vimId="vim-2")), None, [(VIMS, "more")]),
        # The registration writes both.
        (lambda vnf: vnf[VIMS].update(more=entry(vimId="vim-new")), "vim-new", []),
        (lambda vnf: vnf[VIMS]["edge"].update(interfaceInfo={"endpoint": "https://c"}), "vim-own", []),
    ],
)
def test_a_script_may_say_which_cluster_it_has_built_or_deleted(
    change: Change, vim_id: str | None, paths: list[tuple[str, ...]]
) -> None:
    assert [path for path, _ in answered(change, vim_id=vim_id)] == paths


def test_an_attribute_without_a_value_is_removed() -> None:
    """lcm-api reads no instance in which it is null."""
    given = {"vnf_instance": {"id": "inst-1", "metadata": {"a": 1}, "extensions": {"b": 1, "c": 2}}}
    value = {"vnf_instance": {"id": "inst-1", "metadata": None, "extensions": {"b": None, "c": 0}}}
    found = read_answer(value, given, RING, marked=frozenset())
    assert {edit.path: edit.change for edit in found.edits} == {
        ("metadata",): {},
        ("extensions", "b"): {},
        ("extensions", "c"): {"value": 0},
    }


class Machines(list[dict[str, Any]]):
    """Counts how often it is read from its beginning."""

    reads = 0

    def __iter__(self) -> Iterator[dict[str, Any]]:
        self.reads += 1
        return super().__iter__()


@pytest.mark.parametrize("edits", [1, 100])
def test_the_machines_of_an_answer_are_read_once_for_all_its_edits(edits: int) -> None:
    """Otherwise 5,000 edits beside 5,000 machines hold the service for more than half a minute."""
    machines = Machines([{"id": "vnfc-1"}])
    info = {"vnfcResourceInfo": machines}
    metadata = {f"key-{number}": 1 for number in range(edits)}
    given = {
        "vnf_instance": {
            "id": "inst-1",
            "metadata": {"a": 0},
            "instantiatedVnfInfo": {"vnfcResourceInfo": [{"id": "vnfc-1"}]},
        }
    }
    value = {"vnf_instance": {**given["vnf_instance"], "metadata": {"a": 0, **metadata}, "instantiatedVnfInfo": info}}
    found = read_answer(value, given, RING, marked=frozenset())
    assert len(found.edits) == edits
    assert machines.reads == 2  # in clear, and to hide its secrets
