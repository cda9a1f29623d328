"""Runs a phase of a driver class of Tacker's v1: reads a pickle from stdin and answers with one on stdout, as scripts of v2 do.

In addition to what those get: ``driver_class`` (a class of the file in ``sys.argv[0]``), ``stack`` (the instance's, as facts),
``earlier_stacks`` (ids of the stacks that held machines before), ``instantiated_with`` (additionalParams).
"""

import copy
import importlib.util
import inspect
import pickle
import sys
import traceback

import kubevnfm_broker as broker
from tacker import objects
from tacker.objects.fields import Record, plain, record

_MODULE = "kubevnfm_driver_of_the_package"
_OWN = ("vim_connection_info", "vnf_metadata", "instantiated_vnf_info")
"""Attributes of the instance that v1 has in a form of its own."""
_ADDED = ("instance_id", "additional_params")
"""Attributes of instantiatedVnfInfo that v1 has in addition; what a driver does to them is not stored."""


def instance_of(given):
    """Return the instance in v1's form."""
    body = dict(given["vnf_instance"])
    vims, metadata = body.pop("vimConnectionInfo", {}), body.pop("metadata", {})
    info = record(body.pop("instantiatedVnfInfo", {}))
    made_with = given.get("instantiated_with") or (given["request"] or {}).get("additionalParams") or {}
    info.additional_params = copy.deepcopy(made_with)
    info.instance_id = (given.get("stack") or {}).get("stack_id")
    instance = record(body, kind=objects.VnfInstance)
    instance.vim_connection_info = _entries(vims)
    instance.vnf_metadata = copy.deepcopy(metadata)
    instance.instantiated_vnf_info = info
    return instance


def body_of(instance, given):
    """Return the instance in the form of scripts of v2, as ``given`` has it."""
    rest = _without(instance, _OWN)
    body = {**{name: one for name, one in given["vnf_instance"].items() if name.startswith("_")}, **plain(rest)}
    body["metadata"] = plain(instance.vnf_metadata)
    body["vimConnectionInfo"] = {
        str(one.id): {name: value for name, value in plain(one).items() if name != "id"}
        for one in instance.vim_connection_info
    }
    if "instantiatedVnfInfo" in given["vnf_instance"]:
        info = given["vnf_instance"]["instantiatedVnfInfo"]
        as_given = {name: info[name] for name in ("additionalParams", "instanceId") if name in info}
        body["instantiatedVnfInfo"] = {**plain(_without(instance.instantiated_vnf_info, _ADDED)), **as_given}
    return body


def _without(found, names):
    """Return a copy of the record without some of its attributes."""
    left = copy.copy(found)
    for name in names:
        vars(left).pop(name, None)
    return left


def request_of(given, instance):
    """Return the request in v1's form."""
    body = dict(given["request"] or {})
    vims = body.pop("vimConnectionInfo", None)
    phase = given["operation"]
    if phase == "heal_end" and not body.get("vnfcInstanceId"):
        # As Tacker: of a heal of the whole VNF the driver gets the instance's information.
        return instance.instantiated_vnf_info
    request = record(body)
    if vims is not None:
        request.vim_connection_info = _entries(vims)
    for link in request.ext_virtual_links:
        for cp in link.ext_cps:
            if isinstance(cp.cp_config, dict):
                cp.cp_config = list(cp.cp_config.values())
    if request.vnfc_instance_id:
        infos = (given["vnf_instance"].get("instantiatedVnfInfo") or {}).get("vnfcInfo") or ()
        resources = {one["id"]: one.get("vnfcResourceInfoId") for one in infos}
        request.vnfc_instance_id = [resources.get(one) or one for one in request.vnfc_instance_id]
    return request


def _entries(vims):
    return [record({**one, "id": key}, kind=objects.VimConnectionInfo) for key, one in vims.items()]


def arguments_of(given, instance):
    """Return the positional arguments and the others of the phase."""
    grant, asked = given.get("grant_response"), given.get("grant_request")
    context = Record(project_id="", tenant_id="", user_id="", is_admin=False)
    order = [
        context, instance, request_of(given, instance), record(grant) if grant else None, record(asked) if asked else None
    ]
    stack = given.get("stack") or {}
    vnf = {
        "id": instance.id, "name": instance.vnf_instance_name, "vnfd_id": instance.vnfd_id,
        "instance_id": stack.get("stack_id"), "attributes": {}, "status": "ACTIVE",
    }
    others = {"vnf": vnf}
    if given["operation"].startswith("scale_"):
        others["scale_out_id_list"] = _moving(given, stack)
        others["scale_name_list"] = broker.members(others["scale_out_id_list"])
    return order, others


def _moving(given, stack):
    """Return the ids of the stacks of the machines that leave, at the start, or that have come, at the end."""
    servers = stack.get("servers", ())
    if given["operation"] == "scale_end":
        earlier = set(given.get("earlier_stacks") or ())
        return [one["stack_id"] for one in servers if one["stack_id"] not in earlier]
    removed = (given.get("grant_request") or {}).get("removeResources") or ()
    leaving = {one["resource"]["resourceId"] for one in removed if one.get("type") == "COMPUTE"}
    return [one["stack_id"] for one in servers if one["server_id"] in leaving]


def call(method, order, others):
    """Call the method with as many arguments as it takes: some phases of Tacker have no grant."""
    takes = inspect.signature(method).parameters.values()
    kinds = {one.kind for one in takes}
    if inspect.Parameter.VAR_POSITIONAL not in kinds:
        by_position = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        order = order[: sum(one.kind in by_position for one in takes)]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        names = {one.name for one in takes if one.kind is inspect.Parameter.KEYWORD_ONLY}
        others = {name: value for name, value in others.items() if name in names}
    method(*order, **others)


def load(path):
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[_MODULE] = module
    spec.loader.exec_module(module)
    return module


def main(given):
    """Return the exit status and the answer; a driver that fails leaves what it has saved."""
    broker.begin(given)
    instance = instance_of(given)
    saved = []
    object.__setattr__(instance, "_saved", lambda: saved.append(copy.deepcopy(body_of(instance, given))))
    data = given.get("user_script_err_handling_data") or {}
    try:
        driver = getattr(load(sys.argv[0]), given["driver_class"])()
        order, others = arguments_of(given, instance)
        call(getattr(driver, given["operation"]), order, others)
    except BaseException as error:  # noqa: BLE001 - foreign code may raise anything; its author gets the text
        trace = traceback.TracebackException.from_exception(error)
        # Its author gets the lines of the package, and not those between.
        ours = (__file__.rpartition("/")[0], "<frozen importlib")
        trace.stack[:] = [one for one in trace.stack if not one.filename.startswith(ours)]
        print("".join(trace.format()), file=sys.stderr, end="")
        body, status = saved[-1] if saved else None, 1
    else:
        body, status = body_of(instance, given), 0
    return status, {"vnf_instance": body, "user_script_err_handling_data": data, "vim": broker.created_vim()}


if __name__ == "__main__":
    given, answers = pickle.load(sys.stdin.buffer), sys.stdout
    sys.stdout = sys.stderr  # what the driver prints is output and no part of the answer
    status, answer = main(given)
    sys.stdout = answers
    answers.buffer.write(pickle.dumps(answer))
    answers.flush()
    sys.exit(status)
