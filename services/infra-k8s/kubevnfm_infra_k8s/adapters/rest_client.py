"""kubernetes-asyncio's REST client, imported without the models of that package.

`kubernetes_asyncio` and `kubernetes_asyncio.client` import 859 modules of generated models when they are imported: at least a
quarter of a second of processor time and 20 MiB in each process. The driver handles objects of any kind as they are, and needs
none of them.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from kubernetes_asyncio.client.configuration import Configuration
    from kubernetes_asyncio.client.rest import RESTClientObject

__all__ = ("Configuration", "RESTClientObject")

_LIBRARY: Final = "kubernetes_asyncio"
_CLIENT: Final = f"{_LIBRARY}.client"


def _modules(*names: str) -> list[ModuleType]:
    """Return modules of the client package; other code still imports the whole library."""
    if _LIBRARY in sys.modules:
        return [importlib.import_module(f"{_CLIENT}.{name}") for name in names]
    spec = importlib.util.find_spec(_LIBRARY)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"No module named {_LIBRARY!r}", name=_LIBRARY)
    folder = Path(spec.submodule_search_locations[0])
    try:
        # Packages without content in place of the real ones: the modules that are looked for find each other by them.
        for name, path in ((_LIBRARY, folder), (_CLIENT, folder / "client")):
            package = sys.modules[name] = ModuleType(name)
            package.__path__ = [str(path)]
        return [importlib.import_module(f"{_CLIENT}.{name}") for name in names]
    finally:
        for name in [name for name in sys.modules if name == _LIBRARY or name.startswith(f"{_LIBRARY}.")]:
            del sys.modules[name]


if not TYPE_CHECKING:
    _configuration, _rest = _modules("configuration", "rest")
    Configuration = _configuration.Configuration
    RESTClientObject = _rest.RESTClientObject
