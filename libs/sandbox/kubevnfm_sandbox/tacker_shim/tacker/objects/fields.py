"""Records whose attributes are those of SOL003 in Python's spelling; to and from the form of JSON."""

import re

_FREE = frozenset(
    "accessInfo additionalParams extensions extra interfaceInfo metadata nfv userDefinedData vnfConfigurableProperties "
    "vnfcConfigurableProperties".split()
)
"""Attributes whose names within are the author's own."""
_MAPS = frozenset(["cpConfig", "vimConnectionInfo", "vimConnections"])
"""Attributes whose keys are the author's own, and whose values are objects."""
_OBJECTS = frozenset("access_info additional_params extensions metadata vnf_metadata vnf_configurable_properties".split())
_LISTS = frozenset(
    "add_resources remove_resources update_resources temp_resources zones vim_connections vim_connection_info "
    "vnfc_resource_info vnfc_cp_info virtual_storage_resource_info vnf_virtual_link_resource_info ext_cp_info "
    "ext_virtual_link_info ext_virtual_links ext_cps scale_status".split()
)


class Record:
    """Attributes that were not given are empty where a driver iterates over them or looks into them, otherwise None."""

    def __init__(self, **attributes):
        vars(self).update(attributes)

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        if name in _OBJECTS or name in _LISTS:
            # Kept, because a driver may add to it.
            vars(self)[name] = {} if name in _OBJECTS else []
            return vars(self)[name]
        return None

    def __repr__(self):
        return "%s(%s)" % (type(self).__name__, ", ".join(self._fields()))

    def _fields(self):
        return {name: value for name, value in vars(self).items() if not name.startswith("_")}


def snake(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()


def camel(name):
    first, *others = name.split("_")
    return first + "".join(part[:1].upper() + part[1:] for part in others)


def record(value, name="", kind=Record):
    """Return what JSON has under a name, objects as records."""
    if isinstance(value, dict) and name in _MAPS:
        return {key: record(one) for key, one in value.items()}
    if isinstance(value, dict) and name not in _FREE:
        found = kind(**{snake(key): record(one, key) for key, one in value.items()})
        vars(found)["_names"] = {snake(key): key for key in value}
        return found
    if isinstance(value, list):
        return [record(one, name) for one in value]
    return value


def plain(value):
    """Return a record as JSON has it; attributes that are None are left out."""
    if isinstance(value, Record):
        names = vars(value).get("_names", {})
        found = {name: one for name, one in value._fields().items() if one is not None}
        return {names.get(name) or camel(name): plain(one) for name, one in found.items()}
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(one) for one in value]
    return value
