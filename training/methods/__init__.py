"""The training methods, one module each, found by name. Loads no torch, so that the app can read their fields.

docs/training.md says how a method is added.
"""

import pkgutil
from collections.abc import Mapping
from functools import cache
from importlib import import_module

from training.methods.base import Method

_SHARED = ("base", "reference", "supervised")  # modules that are not methods


@cache
def all_methods() -> Mapping[str, Method]:
    """All methods by name: the `METHOD` of each module of this package. Those that work with any conversation come
    first.

    Raises ValueError for a method whose name differs from its module's.
    """
    found: dict[str, Method] = {}
    for module in sorted(each.name for each in pkgutil.iter_modules(__path__) if each.name not in _SHARED):
        method: Method = import_module(f"{__name__}.{module}").METHOD
        if method.name.replace("-", "_") != module:
            raise ValueError(f"training/methods/{module}.py: expected a method of that name, got {method.name}")
        found[method.name] = method
    return {each.name: each for each in sorted(found.values(), key=lambda method: (bool(method.needs), method.name))}


def methods_here() -> Mapping[str, Method]:
    """The methods that can be trained here, not only by vendors."""
    return {name: method for name, method in all_methods().items() if method.loss}
