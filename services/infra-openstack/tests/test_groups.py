"""Groups whose last change failed: what Heat is sent so that it gives their members the group's definition."""

from __future__ import annotations

import json

import pytest
from kubevnfm_infra_openstack.domain.groups import repairing
from kubevnfm_infra_openstack.domain.hot import Template
from kubevnfm_infra_openstack.domain.resources import unfinished_groups
from kubevnfm_infra_openstack.domain.stack import HeatResource, Stack, StackChange, StackDefinition, StackState

STACK = Stack(id="top", name="vnf", state=StackState.BROKEN)
KEPT = ("tag", "change/1")


def group(name: str, status: str, *, stack_id: str = "top") -> HeatResource:
    return HeatResource(
        name, "OS::Heat::AutoScalingGroup", f"id-{name}", status, "", stack_id, nested_id=f"nested-{name}"
    )


def template(**members: object) -> Template:
    return {
        "heat_template_version": "2018-08-31",
        "resources": {
            name: {"type": "OS::Heat::AutoScalingGroup", "properties": {"max_size": 3, "resource": member}}
            for name, member in members.items()
        },
    }


def member_of(body: Template, name: str) -> object:
    return body["resources"][name]["properties"]["resource"]


def test_groups_are_found_by_the_template_that_contains_them() -> None:
    site = HeatResource("site", "site.yaml", "id-site", "UPDATE_FAILED", "", "top", nested_id="nested-site")
    found = unfinished_groups(
        STACK,
        [
            group("failed", "UPDATE_FAILED"),
            group("stopped", "UPDATE_IN_PROGRESS"),
            group("sound", "UPDATE_COMPLETE"),
            site,
            group("inner", "CREATE_FAILED", stack_id="nested-site"),
        ],
    )
    assert found == {"": {"failed", "stopped"}, "site.yaml": {"inner"}}


def test_only_these_groups_get_a_mark_and_nothing_else_changes() -> None:
    top = template(failed={"type": "vdu.yaml", "metadata": {"own": 1}}, sound={"type": "vdu.yaml"})
    inner = template(inner={"type": "vdu.yaml"})
    change = StackChange(KEPT, 60, files={"other.yaml": "{}"}, parameters={"image": "new"})
    after = StackDefinition(top, {}, {"site.yaml": json.dumps(inner)})
    repaired = repairing(change, after, {"site.yaml": inner}, {"": {"failed"}, "site.yaml": {"inner"}}, "change/1")
    assert isinstance(repaired.template, dict)
    assert member_of(repaired.template, "failed") == {
        "type": "vdu.yaml",
        "metadata": {"own": 1, "kubevnfm_repaired_by": "change/1"},
    }
    assert member_of(repaired.template, "sound") == {"type": "vdu.yaml"}
    site = json.loads(repaired.files["site.yaml"])
    assert member_of(site, "inner") == {"type": "vdu.yaml", "metadata": {"kubevnfm_repaired_by": "change/1"}}
    assert repaired.files["other.yaml"] == "{}"
    assert (repaired.tags, repaired.parameters, repaired.is_whole) == (KEPT, {"image": "new"}, False)


@pytest.mark.parametrize("member", [{"get_param": "member"}, {"type": "vdu.yaml", "metadata": {"get_param": "facts"}}])
def test_a_function_stays_as_it_is(member: object) -> None:
    top = template(failed=member)
    repaired = repairing(StackChange(KEPT, 60), StackDefinition(top, {}, {}), {}, {"": {"failed"}}, "change/1")
    assert repaired.template == top
