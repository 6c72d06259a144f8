"""`importlib` without files: modules are built in or frozen."""

import sys
import _frozen_importlib as _bootstrap

__import__ = __import__


def import_module(name, package=None):
    level = 0
    if name.startswith("."):
        if not package:
            raise TypeError(f"the 'package' argument is required to perform a relative import for {name!r}")
        level = len(name) - len(name.lstrip("."))
    return _bootstrap._gcd_import(name[level:], package, level)


def invalidate_caches():
    pass


def reload(module):
    raise ImportError("modules cannot be reloaded here")
