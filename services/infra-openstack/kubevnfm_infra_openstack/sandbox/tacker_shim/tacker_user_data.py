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

    The result is None if the class has no such method. Only ``instantiate`` is required.
    """
    klass = _load(given["file"], given["class"], package)
    style = _style(klass) or given["api_version"]
    name = given["method"]
    method = getattr(klass, name, None)
    if not callable(method):
        if name == "instantiate":
            raise Refused("%s has no instantiate" % given["class"])
        return {"style": style, "result": None}
    if style == "v1":
        return {"style": style, "result": _call_v1(method, given) if name == "instantiate" else None}
    return {"style": style, "result": _call_v2(name, method, given, package)}


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


def _call_v1(method, given):
    from tacker_request import RequestView, grant_info

    request = RequestView.of_instantiate(given["request"])
    result = method(given["base_hot"], given["vnfd"], request, grant_info(given["images"]))
    if not isinstance(result, dict):
        raise Refused("instantiate returned %s; a dict of Heat parameters expected" % type(result).__name__)
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
