"""The cost of a package grows with its size, not with its square; packages that cost more are refused."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
import yaml
from kubevnfm_csar.errors import PackageRefused
from kubevnfm_csar.limits import Limits
from kubevnfm_csar.package import Package, read_package
from kubevnfm_csar.vnfd.model import ScalingAspect, Vnfd
from packages.package_builder import ONE_VNFD, with_meta, zip_of

_CPU_S = 4.0
"""Each of the packages here takes below 2 s, and takes minutes where the time grows with the square."""


def one_file(vnfd: str, **more: str) -> dict[str, str | bytes]:
    return with_meta({"one.yaml": vnfd, **{f"{name}.yaml": text for name, text in more.items()}}, entry="one.yaml")


def read(folder: Path, files: dict[str, str | bytes], limits: Limits | None = None) -> Package:
    path = zip_of(folder / "package.zip", files)
    before = time.process_time()
    found = read_package(path, limits=limits)
    assert time.process_time() - before < _CPU_S
    return found


def refusal(folder: Path, files: dict[str, str | bytes], limits: Limits | None = None) -> str:
    before = time.process_time()
    with pytest.raises(PackageRefused) as caught:
        read(folder, files, limits)
    assert time.process_time() - before < _CPU_S
    return str(caught.value)


def with_properties(**properties: object) -> str:
    """The VNFD of one file, with these properties of its VNF node as well."""
    document = yaml.safe_load(ONE_VNFD)
    document["topology_template"]["node_templates"]["VNF"]["properties"].update(properties)
    return yaml.safe_dump(document)


def with_sections(**sections: object) -> str:
    """The VNFD of one file, with more sections at its top; ``topology_template`` is merged."""
    document = yaml.safe_load(ONE_VNFD)
    document["topology_template"].update(sections.pop("topology_template", {}))
    for name, section in sections.items():
        document[name] = {**document.get(name, {}), **section} if isinstance(section, dict) else section
    return yaml.safe_dump(document)


def test_many_files_cost_their_number(tmp_path: Path) -> None:
    files = {f"Files/{number}.txt": "x" for number in range(3000)}
    found = read(tmp_path, with_meta({"one.yaml": ONE_VNFD, **files}, entry="one.yaml", listed=tuple(files)))
    assert len(found.artifacts) == 3000


def test_deep_folders_cost_their_number(tmp_path: Path) -> None:
    folder = "a/" * 400
    files = {f"{folder}{number}.txt": "x" for number in range(1000)}
    assert len(read(tmp_path, with_meta({"one.yaml": ONE_VNFD, **files}, entry="one.yaml")).artifacts) == 1000


def test_a_vnfd_of_too_many_files_is_refused(tmp_path: Path) -> None:
    chain = {f"t{number}": f"imports: [t{number + 1}.yaml]\n" for number in range(3000)}
    entry = ONE_VNFD.replace("imports: [", "imports: [t0.yaml, ")
    assert "more than the 500 files" in refusal(tmp_path, one_file(entry, **chain, t3000="imports: []\n"))


def test_a_vnfd_with_files_that_are_too_large_together_is_refused(tmp_path: Path) -> None:
    types = {f"t{number}": f"description: {'x' * 400}\n" for number in range(3)}
    entry = ONE_VNFD.replace("imports: [", "imports: [t0.yaml, t1.yaml, t2.yaml, ")
    size = len(entry) + 1000
    assert f"more than the {size} bytes" in refusal(tmp_path, one_file(entry, **types), Limits(definitions_bytes=size))


def test_files_that_import_one_another_are_each_read_once(tmp_path: Path) -> None:
    names = [f"t{number}" for number in range(60)]
    imports = ", ".join(f"{name}.yaml" for name in names)
    entry = ONE_VNFD.replace("imports: [", f"imports: [{imports}, ")
    found = read(tmp_path, one_file(entry, **dict.fromkeys(names, f"imports: [{imports}]\n")))
    assert len(found.vnfd.files) == 61


def test_a_long_chain_of_types_is_refused(tmp_path: Path) -> None:
    chain = {f"t{number}": {"derived_from": f"t{number + 1}"} for number in range(200)}
    vnfd = with_sections(
        node_types=chain,
        topology_template={"node_templates": {**_vnf(), **{f"n-{kind}": {"type": kind} for kind in chain}}},
    )
    assert "derives from more than the 50 types" in refusal(tmp_path, one_file(vnfd))


def _vnf() -> dict[str, object]:
    nodes: dict[str, object] = yaml.safe_load(ONE_VNFD)["topology_template"]["node_templates"]
    return nodes


@pytest.mark.parametrize(
    ("uses", "depth", "rule"), [(2, 40, "nested properties allowed"), (1, 400, "50 levels allowed")]
)
def test_data_types_that_use_one_another_are_bounded(tmp_path: Path, uses: int, depth: int, rule: str) -> None:
    """Two properties of the next type in each of 40 types are 2 ** 40 values."""
    kinds = {
        f"d{number}": {"properties": {f"p{use}": {"type": f"d{number + 1}"} for use in range(uses)}}
        for number in range(depth)
    }
    vnfd = with_sections(
        data_types=kinds,
        node_types={"acme.nodes.One": {**_one_type(), "properties": {"configurable_properties": {"type": "d0"}}}},
    )
    assert rule in refusal(tmp_path, one_file(vnfd))


def _one_type() -> dict[str, object]:
    return {"derived_from": "tosca.nodes.nfv.VNF"}


def test_names_that_are_not_known_are_compared_with_few(tmp_path: Path) -> None:
    """Each comparison takes up to a second for names of some kilobytes; a VNFD may have 100,000 of them."""
    kinds = {f"acme.nodes.{'x' * 50}{number}": {"derived_from": "tosca.nodes.Root"} for number in range(400)}
    nodes = {f"n{number}": {"type": f"acme.node.{'x' * 50}{number}", "k" * 2_000: 1} for number in range(60)}
    vnfd = with_sections(node_types=kinds, topology_template={"node_templates": {**_vnf(), **nodes}})
    found = read(tmp_path, one_file(vnfd))
    assert len(found.warnings) == 20
    assert max(map(len, found.warnings)) < 500


def test_groups_do_not_multiply_policies(tmp_path: Path) -> None:
    members = [f"m{number}" for number in range(500)]
    policies = [
        {f"p{number}": {"type": "tosca.policies.nfv.AffinityRule", "targets": ["all"]}} for number in range(500)
    ]
    vnfd = with_sections(topology_template={"groups": {"all": {"members": members}}, "policies": policies})
    assert "more than the 100000 targets" in refusal(tmp_path, one_file(vnfd))


def test_blanks_within_a_line_of_the_meta_file_cost_their_number(tmp_path: Path) -> None:
    files = one_file(ONE_VNFD)
    meta = files["TOSCA-Metadata/TOSCA.meta"]
    assert isinstance(meta, str)
    found = read(tmp_path, {**files, "TOSCA-Metadata/TOSCA.meta": f"{meta}Created-For: a{' ' * 200_000}b\n"})
    assert found.entry == "one.yaml"


def test_a_scale_level_of_any_size_is_counted_at_once() -> None:
    aspect = ScalingAspect(aspect_id="a", max_scale_level=10**12, deltas=({"vdu": 1}, {"vdu": 3}))
    assert [aspect.delta("vdu", level=level) for level in (0, 1, 2, 3, 10**12)] == [0, 1, 4, 7, 1 + 3 * (10**12 - 1)]
    assert aspect.delta("other", level=10**12) == 0


@pytest.mark.parametrize(
    "policies",
    [
        [{"i": {"type": "tosca.policies.nfv.VduInitialDelta", "targets": ["node"],
                "properties": {"initial_delta": {"number_of_instances": 10**9}}}}],
        [{"a": {"type": "tosca.policies.nfv.ScalingAspects",
                "properties": {"aspects": {"a": {"name": "a", "max_scale_level": 10**12}}}}},
         {"l": {"type": "tosca.policies.nfv.InstantiationLevels",
                "properties": {"levels": {"l": {"scale_info": {"a": {"scale_level": 10**12}}}}}}}],
    ],
)  # fmt: skip
def test_a_vnf_that_begins_with_more_than_any_vim_holds_is_refused(
    tmp_path: Path, policies: list[dict[str, object]]
) -> None:
    """Its machines are listed one by one: in the request for a grant, in the template, in the inventory."""
    nodes = yaml.safe_load(ONE_VNFD)["topology_template"]["node_templates"]
    vdu = {"type": "tosca.nodes.nfv.Vdu.Compute", "properties": {"name": "node", "description": "d"}}
    topology = {"node_templates": {**nodes, "node": vdu}, "policies": policies}
    assert "at most 10000 expected" in refusal(tmp_path, one_file(with_sections(topology_template=topology)))


@pytest.mark.parametrize("size", ["9" * 400, f"{'9' * 400} GB", ".inf", ".nan", "-5", "²"])
def test_a_size_that_no_system_can_store_is_refused(tmp_path: Path, size: str) -> None:
    vnfd = ONE_VNFD + (
        "    store:\n"
        "      type: tosca.nodes.nfv.Vdu.VirtualBlockStorage\n"
        f"      properties: {{virtual_block_storage_data: {{size_of_storage: {size}}}}}\n"
    )
    assert "a size such as '20 GB' expected" in refusal(tmp_path, one_file(vnfd))


def test_numbers_beyond_64_bits_are_texts(tmp_path: Path) -> None:
    extensions = {"digest": 12345678901234567890123, "most": float("inf"), "port": 8080, "share": 0.5}
    found = read(tmp_path, one_file(with_properties(modifiable_attributes={"extensions": extensions})))
    assert found.vnfd.initial_values.extensions == {
        "digest": "12345678901234567890123",
        "most": ".inf",
        "port": 8080,
        "share": 0.5,
    }
    assert Vnfd.model_validate_json(found.vnfd.model_dump_json()) == found.vnfd


def test_a_refusal_quotes_no_megabytes(tmp_path: Path) -> None:
    vnfd = with_sections(imports=["x" * 100_000])
    assert len(refusal(tmp_path, one_file(vnfd))) < 1100
