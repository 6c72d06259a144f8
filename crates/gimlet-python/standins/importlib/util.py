"""The part of `importlib.util` that works without files."""

import sys
from _frozen_importlib import _find_spec, module_from_spec, spec_from_loader


def find_spec(name, package=None):
    if name in sys.modules:
        return getattr(sys.modules[name], "__spec__", None)
    return _find_spec(name, None)


def resolve_name(name, package):
    if not name.startswith("."):
        return name
    level = len(name) - len(name.lstrip("."))
    base = package.rsplit(".", level - 1)[0] if level > 1 else package
    return f"{base}.{name[level:]}"
