"""CNFs that are Helm charts: what infra-k8s is asked for."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest
from kubevnfm_events import PackageRef
from kubevnfm_events.objects import ApplyObjects, ObjectFacts, ObjectsApplied, ObjectsScaled, PodFacts
from kubevnfm_lcm_api.lifecycle.containers.chart_values import misspelled_values
from kubevnfm_lcm_api.lifecycle.core.ports import PackageCatalogue
from kubevnfm_secrets import Secret
from packages.package_variants import variant
from worlds.lcm_world import World, sample_request

FILES = {"Files/web/Chart.yaml": "{apiVersion: v2, name: web, version: 1.0.0}\n", "Files/web.tgz": "an archive\n"}
PHASES = {"modify_information_end": "mgmt-container-update"}
APPLIED = ObjectsApplied(
    namespace="default",
    objects=(
        ObjectFacts(
            api_version="apps/v1", kind="Deployment", namespace="default", name="web-x", uid="u", vdu_id="VDU1"
        ),
    ),
    pods=(PodFacts(vdu_id="VDU1", name="web-x-1", namespace="default", uid="u1", owner_kind="Deployment"),),
)
PASSWORD = "swordfish-11"


async def sent(world: World, vim_type: str, **parameters: Any) -> ApplyObjects:
    """Instantiate a chart; return the command."""
    command = await instantiated(world, vim_type, **parameters)
    assert command.chart is not None
    assert command.chart.release_name == f"vnf{command.vnf_instance_id.replace('-', '')}"
    return command


async def instantiated(world: World, vim_type: str, **parameters: Any) -> ApplyObjects:
    """Instantiate a CNF of charts; return the command."""
    world.vims.add("VIM_ID", "kubernetes")
    onboarded = await world.upload(variant(world.folder, files=FILES, phases=PHASES))
    assert onboarded["onboardingState"] == "ONBOARDED", onboarded
    body = copy.deepcopy(sample_request("cnf", "instantiate"))
    body["additionalParams"] = parameters
    body["vimConnectionInfo"]["cluster"]["vimType"] = vim_type
    instance_id = await world.create("cnf")
    world.twins.answers["infra.k8s.apply_objects"] = APPLIED
    operation = await world.reached(await world.ask(instance_id, "instantiate", body))
    assert operation["operationState"] == "COMPLETED"
    assert PASSWORD.encode() not in (await world.lcm("GET", f"/vnf_lcm_op_occs/{operation['id']}")).raw
    [command] = [each.data for each in world.twins.commands]
    assert isinstance(command, ApplyObjects)
    return command


@pytest.mark.parametrize("vim_type", ["ETSINFV.HELM.V_3", "ETSINFV.KUBERNETES.V_1"])
@pytest.mark.parametrize("path", ["Files/web", "Files/web.tgz"])
async def test_a_chart_is_sent_with_its_values_and_the_replicas_of_its_vdus(
    world: World, vim_type: str, path: str
) -> None:
    """CR-005, CR-031: keys as ``helm --set`` has them; the number of the VNFD goes into the value that the request names."""
    given = {"image.tag": "1.27", "login.password": PASSWORD, "annotations": {"a.b/c": "d"}, "zone\\.name": "z"}
    command = await sent(
        world,
        vim_type,
        namespace="web",
        helm_chart_path=path,
        helm_parameters=given,
        helm_value_names={"VDU1": {"replica": "web.replicaCount"}},
    )
    assert command.chart is not None
    assert command.chart.path == path
    values: dict[str, Any] = dict(command.chart.values)
    assert isinstance(values.pop("login")["password"], Secret)
    assert values == {
        "image": {"tag": "1.27"},
        "annotations": {"a.b/c": "d"},
        "zone.name": "z",
        "web": {"replicaCount": 2},
    }
    assert command.def_files == ()
    [vdu] = command.vdus
    assert (vdu.name, vdu.replicas, vdu.is_in_chart) == ("web", 2, True)


async def test_a_heal_renders_the_chart_again_at_the_present_scale(world: World) -> None:
    """CR-034: with the values of the instantiate request."""
    names = {"VDU1": {"replica": "web.replicaCount"}}
    first = await sent(world, "ETSINFV.HELM.V_3", helm_chart_path="Files/web", helm_value_names=names)
    instance_id = first.vnf_instance_id
    world.twins.answers["infra.k8s.scale_objects"] = ObjectsScaled(**dict(APPLIED))
    scale = {"type": "SCALE_OUT", "aspectId": "web_aspect"}
    for task, body in (("scale", scale), ("heal", {})):
        operation = await world.reached(await world.ask(instance_id, task, body))
        assert operation["operationState"] == "COMPLETED", operation
    again = world.twins.commands[-1].data
    assert isinstance(again, ApplyObjects)
    assert again.chart is not None
    assert again.chart.values == {"web": {"replicaCount": 3}}


async def test_manifests_of_a_chart_cannot_be_replaced(world: World) -> None:
    command = await sent(world, "ETSINFV.HELM.V_3", helm_chart_path="Files/web")
    change = {"metadata": {"configmap_secret_paths": ["Files/kubernetes/configmap.yaml"]}}
    answer = await world.lcm("PATCH", f"/vnf_instances/{command.vnf_instance_id}", change)
    assert "Helm chart" in answer.problem(422)["detail"]


async def test_the_releases_of_version_1_are_sent_in_order_and_healed_at_the_present_scale(world: World) -> None:
    """CR-005a, CR-030, CR-033, CR-034: the value of an aspect is in the release of the workload that it scales."""
    listed = [
        {
            "exthelmchart": "false",
            "helmchartfile_path": "Files/web.tgz",
            "helmreleasename": "db",
            "helmparameter": ["service.port=8081,tls=true", f"login.password={PASSWORD}"],
        },
        {"exthelmchart": False, "helmchartfile_path": "Files/web", "helmreleasename": "front", "helmparameter": []},
    ]
    first = await instantiated(
        world,
        "kubernetes",
        namespace="web",
        use_helm="true",
        using_helm_install_param=listed,
        helm_replica_values={"web_aspect": "web.count"},
        vdu_mapping={"VDU1": {"kind": "Deployment", "name": "front-x", "helmreleasename": "front"}},
    )
    assert (first.chart, first.def_files) == (None, ())
    assert [(each.release_name, each.path, each.digest) for each in first.charts] == [
        ("db", "Files/web.tgz", ""),
        ("front", "Files/web", ""),
    ]
    values: dict[str, Any] = dict(first.charts[0].values)
    assert isinstance(values.pop("login")["password"], Secret)
    assert values == {"service": {"port": 8081}, "tls": True}
    assert first.charts[1].values == {"web": {"count": 2}}
    [vdu] = first.vdus
    assert (vdu.name, vdu.kind, vdu.release_name, vdu.replicas) == ("front-x", "Deployment", "front", 2)

    instance_id = first.vnf_instance_id
    world.twins.answers["infra.k8s.scale_objects"] = ObjectsScaled(**dict(APPLIED))
    for task, body in (("scale", {"type": "SCALE_OUT", "aspectId": "web_aspect"}), ("heal", {})):
        operation = await world.reached(await world.ask(instance_id, task, body))
        assert operation["operationState"] == "COMPLETED", operation
    again = world.twins.commands[-1].data
    assert isinstance(again, ApplyObjects)
    assert [dict(each.values) | {"login": 0} for each in again.charts] == [
        {**values, "login": 0},
        {"web": {"count": 3}, "login": 0},
    ]
    paths = {"metadata": {"configmap_secret_paths": ["Files/kubernetes/configmap.yaml"]}}
    answer = await world.lcm("PATCH", f"/vnf_instances/{instance_id}", paths)
    assert "Helm chart" in answer.problem(422)["detail"]
    files = {"lcm-kubernetes-def-files": ["Files/kubernetes/deployment.yaml"]}
    package = {"vnfdId": sample_request("cnf", "create")["vnfdId"], "additionalParams": files}
    answer = await world.lcm("POST", f"/vnf_instances/{instance_id}/change_vnfpkg", package)
    assert "using_helm_install_param" in answer.problem(422)["detail"]


class _OnePackage:
    async def files(self, package_id: str, paths: Sequence[str], *, limit_bytes: int) -> Mapping[str, bytes]:
        files = {"web/values.yaml": b"{image: {tag: a}, replicas: 1, labels: {}}", "bad/values.yaml": b"{a: *b}"}
        return {path: files[path] for path in paths if path in files}


@pytest.mark.parametrize(
    ("given", "found"),
    [
        ({"helm_chart_path": "./web/", "helm_parameters": {"image.tga": 1, "image.any": 2, "labels.x": 3, "replcas": 4}},
         [("/helm_parameters", "replicas"), ("/helm_parameters", "tag")]),
        ({"use_helm": "true", "using_helm_install_param": [
            {"helmreleasename": "a", "exthelmchart": "false", "helmchartfile_path": "web", "helmparameter": ["imge.tag=1"]},
        ]}, [("/using_helm_install_param/0/helmparameter", "image")]),
        ({"helm_chart_path": "bad", "helm_parameters": {"b": 1}}, []),
        ({"helm_chart_path": "web.tgz", "helm_parameters": {"replcas": 1}}, []),
        ({"helm_chart_path": "web", "helm_parameters": {"a..b": 1}}, []),
        ({"using_helm_install_param": "no list"}, []),
    ],
)  # fmt: skip
async def test_a_value_that_is_misspelled_beside_those_of_the_chart_is_a_warning(
    given: dict[str, Any], found: list[tuple[str, str]]
) -> None:
    """API-160: its templates may read others than its values.yaml has, so only what is like one of these is named."""
    packages, package = cast("PackageCatalogue", _OnePackage()), PackageRef(package_id="p", vnfd_id="v")
    warnings = await misspelled_values(packages, package, given)
    assert [(each.field, each.nearest) for each in warnings] == [(f"/additionalParams{at}", near) for at, near in found]
