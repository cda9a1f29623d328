"""ETSI's conformance suite (NFV-TST 010): each case that needs neither a site nor a mock server, against the gateway.

Not part of `make test`: `make test-etsi` runs it, with the suite in the folder ``$ETSI_ROBOT``. Each case gets a gateway of
its own, whose instance, occurrence and packages are in the state that the case names. The bodies that the suite ships for a
site are replaced by those of the sample packages; its files are not changed. ``tests/conformance/etsi_robot.md`` explains
the cases in `EXPLAINED`.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import pytest
from callers.etsi_site import NOWHERE, TASKS, an_instance, an_occurrence, built, many_files, one_file
from packages.package_builder import zip_of
from worlds.lcm_world import World, lcm_world, sample_request

VARIABLE: Final = "ETSI_ROBOT"
ROBOT: Final = Path(__file__).parents[2] / ".run/etsi/bin/robot"
GROUPS: Final = {
    "lcm": "SOL003/VNFLifecycleManagement-API",
    "packages": "SOL003/VNFPackageManagement-API",
    "packages-write": "SOL005/VNFPackageManagement-API",
}
_NEEDS_MORE: Final = re.compile(r"(?i)workflow|notification|WithCheck|parallel|pending|keyword")
"""Files whose cases wait for notifications at a mock server, or run operations of a site; and files without cases."""
_CASE_S: Final = 120.0
EXPLAINED: Final = (
    (r"/ApiVersion: ", "R-01"),
    (r"^lcm/VNFLCMOperationOccurrences: .*(fields|exclude)", "R-02"),
    (r"(?i)too big", "R-03"),
    (r"(?i)^lcm/Terminate.*not[- ]?instantiated", "R-04"),
    (r"^lcm/FailOperationTask: (?!.*(Conflict|Not Found|implemented))", "R-05"),
    (r"^lcm/CancelOperationTask: (?!.*(Conflict|Not Found|implemented))", "R-06"),
    (r"(?i)^lcm/(Retry|Rollback|Cancel|Fail|ScaleVNFToLevel).*not found", "R-07"),
    (r"(?i)^lcm/Subscriptions: .*duplicat", "R-08"),
    (r"^lcm/IndividualSubscription: DELETE", "R-09"),
    (r"^packages/.*(POST|PATCH|DELETE|PUT).*implemented", "R-13 to R-15, R-20"),
    (r"^packages-write/VNFPackageContent.*: .*(PUT|Upload)", "R-16 to R-18"),
    (r"(?i)^packages/.*onboarded.*(state|conflict)", "R-21"),
)
"""The cases that may fail, as a pattern of their names, and the rows that say why."""


@dataclass(frozen=True)
class Case:
    """One case of the suite."""

    group: str
    file: Path
    name: str

    @property
    def title(self) -> str:
        return f"{self.group}/{self.file.stem}: {self.name}"


def cases() -> Iterator[Case]:
    """Yield the cases of the suite that can be run."""
    folder = os.environ.get(VARIABLE)
    for group, path in GROUPS.items() if folder else ():
        for file in sorted(Path(folder or "", path).glob("*.robot")):
            if not _NEEDS_MORE.search(file.stem):
                yield from (
                    Case(group, file, name) for name in _names(file.read_text(encoding="utf-8", errors="replace"))
                )


def _names(text: str) -> Iterator[str]:
    """Yield the names in the section of test cases: its lines that are not indented."""
    section = ""
    for line in text.splitlines():
        if line.startswith("***"):
            section = line.strip("* ").lower()
        elif section.startswith("test case") and line.strip() and line[0] not in " \t#":
            yield line.strip()


async def lcm_variables(world: World, case: Case) -> dict[str, Any]:
    """Make an instance and an occurrence in the state that a case names; return their ids."""
    title = case.title
    is_conflict = "conflict" in title.lower()
    error_handling = re.search(r"/(Retry|Rollback|Fail)", title)
    if re.search(r"(?i)parallel|another lcm|PATCH .*conflict", title) or ("/Cancel" in title and not is_conflict):
        occurrence = await an_occurrence(world, "PROCESSING")
    elif error_handling and not is_conflict:
        occurrence = await an_occurrence(world, "FAILED_TEMP")
    elif (
        re.search(r"(?i)not[- ]?instantiated", title)
        or ("/InstantiateVNF" in title and not is_conflict)
        or ("DELETE Individual VNFInstance" in title and not is_conflict)
    ):
        return {"vnfInstanceId": await an_instance(world), "vnfLcmOpOccId": NOWHERE}
    else:
        instance = await built(world)
        (listed,) = (await world.lcm("GET", f"/vnf_lcm_op_occs?filter=(eq,vnfInstanceId,{instance})")).must(200).json
        return {"vnfInstanceId": instance, "vnfLcmOpOccId": listed["id"]}
    return {"vnfInstanceId": (await world.operation(occurrence))["vnfInstanceId"], "vnfLcmOpOccId": occurrence}


async def package_variables(world: World) -> dict[str, Any]:
    """Make packages in each state; return their ids by the suite's names, which include its misspellings."""
    one, many = [
        await world.upload(zip_of(world.folder / "made.zip", files).read_bytes())
        for files in (one_file(), many_files())
    ]
    disabled = await world.sample("cnf")
    (await world.packages("PATCH", f"/{disabled['id']}", {"operationalState": "DISABLED"})).must(200)
    created = (await world.packages("POST", body={})).must(201).json["id"]
    return {
        **dict.fromkeys(("vnfPackageId", "vnfPkgId", "vnfPkgPlainVNFD", "vnfPackageOctetStreamId"), one["id"]),
        **dict.fromkeys(("vndId", "vnfdId", "vnfdOctetStreamId"), one["vnfdId"]),
        **dict.fromkeys(("onboardingStateVnfPkgId", "creatingVnfPackageId"), created),
        "vnfPkgZipVNFD": many["id"],
        "vndIdZipVnfd": many["vnfdId"],
        "disabledVnfPackageId": disabled["id"],
        "onboardingStateVnfdId": NOWHERE,
        "artifactPath": "Scripts/odd.bin",
        "range": "bytes=0-1023",
        "erroneousRange": "bytes=999999999-",
    }


async def variables(world: World, case: Case) -> dict[str, Any]:
    """Return what the suite's variables must be; Robot Framework prefers them to those of its files."""
    host, _, port = world.url.removeprefix("http://").partition(":")
    where = {f"{role}_{name}": value for role in ("VNFM", "NFVO") for name, value in
             {"SCHEMA": "http", "HOST": host, "PORT": port}.items()}  # fmt: skip
    api = "/vnflcm/v1" if case.group == "lcm" else "/vnfpkgm/v1"
    made = await (lcm_variables(world, case) if case.group == "lcm" else package_variables(world))
    # Last: notifications to an address that nothing listens on are repeated, and the bus is never quiet again.
    body = {"callbackUri": "http://127.0.0.1:9/callback"}
    subscription = (await world.call("POST", f"{api}/subscriptions", body, headers={})).must(201).json["id"]
    return {
        **where,
        "apiRoot": "",
        "AUTH_USAGE": 0,
        "VNFM_DUPLICATION": 1,
        "NFVO_ALLOWS_DUPLICATE_SUBS": 1,
        "NFVO_CHECKS_NOTIF_ENDPOINT": 0,
        "NFVO_RANGE_OK": 1,
        "testOptionalMethods": 1,
        "fields": "_links",
        "sleep_interval": "0s",
        "subscriptionId": subscription,
        **made,
    }


def bodies(vnfd_id: str) -> Mapping[str, Any]:
    """Return the bodies for the sample packages, by the names of the suite's files."""
    return {
        "createVnfRequest": {"vnfdId": vnfd_id},
        "instantiateVnfRequest": sample_request("vm", "instantiate.v1"),
        "scaleVnfRequest": TASKS["scale"],
        "scaleVnfToLevelRequest": TASKS["scale_to_level"],
        "healVnfRequest": TASKS["heal"],
        "operateVnfRequest": TASKS["operate"],
        "changeExtVnfConnectivityRequest": TASKS["change_ext_conn"],
        "changeVnfFlavourRequest": TASKS["change_flavour"],
        "terminateVnfRequest": TASKS["terminate"],
        "lccnSubscriptionRequest": {"callbackUri": "http://127.0.0.1:9/callback"},
    }


async def run(case: Case, folder: Path, given: Mapping[str, Any], vnfd_id: str) -> tuple[bool, str]:
    """Run one case in a copy of its group; return whether it passed, and what Robot Framework printed."""
    group = folder / "group"
    await asyncio.to_thread(shutil.copytree, case.file.parent, group)
    (group / "jsons").mkdir(exist_ok=True)
    for name, body in bodies(vnfd_id).items():
        (group / "jsons" / f"{name}.json").write_text(json.dumps(body), encoding="utf-8")
    (folder / "variables.json").write_text(json.dumps(dict(given)), encoding="utf-8")
    # Brackets: the option takes a pattern, in which a bracket begins a set.
    pattern = re.sub(r"([\[*?])", r"[\1]", case.name)
    process = await asyncio.create_subprocess_exec(
        ROBOT, "--variablefile", folder / "variables.json", "--test", pattern, "--output", "NONE", "--log", "NONE",
        "--report", "NONE", case.file.name, cwd=group, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
    )  # fmt: skip
    try:
        async with asyncio.timeout(_CASE_S):
            printed, _ = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode == 0, printed.decode(errors="replace")


ALL: Final = list(cases())
pytestmark = [pytest.mark.etsi, pytest.mark.timeout(600)]


def test_the_suite_is_there() -> None:
    if not ALL or not ROBOT.exists():
        reason = f"ETSI'S SUITE WAS NOT RUN: {VARIABLE} does not name its folder, or `make test-etsi` has not installed {ROBOT}"
        warnings.warn(reason, stacklevel=1)  # pytest shows warnings, but not skips
        pytest.skip(reason)
    assert {case.group for case in ALL} == set(GROUPS)


@pytest.mark.skipif(not ROBOT.exists(), reason=f"`make test-etsi` has not installed {ROBOT}")
@pytest.mark.parametrize("case", ALL, ids=lambda case: case.title)
async def test_a_case_of_the_suite(case: Case, tmp_path: Path) -> None:
    """API-153."""
    (tmp_path / "world").mkdir()
    async with lcm_world(tmp_path / "world", allowed_networks="127.0.0.0/8") as world:
        given = await variables(world, case)
        vnfd_id = (
            (await world.lcm("GET", f"/vnf_instances/{given['vnfInstanceId']}")).json["vnfdId"]
            if "vnfInstanceId" in given
            else ""
        )
        has_passed, printed = await run(case, tmp_path, given, vnfd_id)
        await world.twins.release()
    row = next((row for pattern, row in EXPLAINED if re.search(pattern, case.title)), None)
    if not has_passed and row is not None:
        pytest.xfail(f"etsi_robot.md, {row}")
    assert has_passed, printed
