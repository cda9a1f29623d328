"""Loads a user data class from the package and calls one of its methods with the arguments of its API version."""

import importlib.util
import os
import sys

PRELOADED = (
    "yaml",
    "tacker_request",
    "tacker.vnfm.lcm_user_data.utils",
    "tacker.vnfm.lcm_user_data.abstract_user_data",
    "tacker.sol_refactored.infra_drivers.openstack.userdata_standard",
)
"""Modules that classes may import, which the sandbox imports while it can certainly read their folder."""


class Refused(Exception):
    """The class cannot be loaded or returns a wrong result; the text is for its author."""


def run(given, package):
    """Return ``{"style", "result"}``; ``package`` is the package's folder as user data sees it.

    ``file`` None: the class is the ready-made StandardUserData. The result is None if the class has no such method, or one
    that does not fit the request. Only ``instantiate`` is required.
    """
    klass = _load(given["file"], given["class"], package) if given["file"] is not None else _standard()
    style = _style(klass) or given["api_version"]
    name = given["method"]
    method = getattr(klass, name, None)
    # A class inherits the abstract methods of its base, which do nothing.
    if not callable(method) or getattr(method, "__isabstractmethod__", False):
        if name == "instantiate":
            raise Refused("%s has no instantiate" % given["class"])
        return {"style": style, "result": None}
    if style == "v1":
        return {"style": style, "result": _call_v1(name, method, given)}
    return {"style": style, "result": _call_v2(name, method, given, package)}


def _standard():
    from tacker.sol_refactored.infra_drivers.openstack.userdata_standard import StandardUserData

    return StandardUserData


def _load(file, name, package):
    path = os.path.join(package, file)
    if not os.path.isfile(path):
        raise Refused("%s: no such file in the package" % file)
    sys.path += [os.path.dirname(path), package]
    module_name = os.path.splitext(file)[0].replace("/", ".")
    spec = importlib.util.spec_from_file_location(module_name, path)
    if spec is None:
        raise Refused("%s: a Python file expected" % file)
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    spec.loader.exec_module(module)
    klass = getattr(module, name, None)
    if not isinstance(klass, type):
        known = sorted(n for n, v in vars(module).items() if isinstance(v, type) and v.__module__ == module_name)
        raise Refused("%s defines no class %s; it defines %s" % (file, name, ", ".join(known) or "none"))
    return klass


def _style(klass):
    """Return ``v1`` or ``v2`` by the base class; None if the class has neither."""
    for style, home in (
        ("v1", "tacker.vnfm.lcm_user_data.abstract_user_data"),
        ("v2", "tacker.sol_refactored.infra_drivers.openstack.userdata_utils"),
    ):
        module = sys.modules.get(home)
        if module is not None and issubclass(klass, module.AbstractUserData):
            return style
    return None


def _call_v1(name, method, given):
    from tacker_request import RequestView, grant_info

    request = RequestView.from_document(given["request"])
    if name == "instantiate":
        result = method(given["base_hot"], given["vnfd"], request, grant_info(given["images"]))
    elif name in ("scale", "heal"):
        instance = RequestView.from_document(given["instance"])
        info = instance.instantiated_vnf_info or RequestView({})
        if name == "heal":
            subject = [vnfc for vnfc in info.vnfc_resource_info if vnfc.compute_resource.resource_id in given["servers"]]
        else:
            # The members of the group that the aspect scales; scale to level, which v1 does not have, names no aspect.
            subject = given["group_size"]
            if subject is None:
                return None
            request = RequestView.from_document({"numberOfSteps": 1, **given["request"]})
        result = method(given["base_hot"], given["vnfd"], request, instance, info, given["parameters"], subject)
    else:
        return None
    if not isinstance(result, dict):
        raise Refused("%s returned %s; a dict of Heat parameters expected" % (name, type(result).__name__))
    return result


_FIELDS = (("template", str), ("parameters", dict), ("files", dict), ("existing", bool))


def _call_v2(name, method, given, package):
    result = method(given["request"], given["instance"], given["grant_request"], given["grant"], package)
    if not isinstance(result, dict) or (name == "instantiate" and not isinstance(result.get("parameters"), dict)):
        raise Refused("%s returned %s; a dict with parameters (a dict) expected" % (name, type(result).__name__))
    for field, kind in _FIELDS:
        if field in result and not isinstance(result[field], kind):
            raise Refused("%s returned %s of type %s" % (name, field, type(result[field]).__name__))
    return {field: result[field] for field, _ in _FIELDS if field in result}
