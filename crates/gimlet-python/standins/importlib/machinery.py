"""Names of `importlib.machinery`; there are no source or extension files."""

from _frozen_importlib import BuiltinImporter, FrozenImporter, ModuleSpec

SOURCE_SUFFIXES = [".py"]
DEBUG_BYTECODE_SUFFIXES = OPTIMIZED_BYTECODE_SUFFIXES = BYTECODE_SUFFIXES = [".pyc"]
EXTENSION_SUFFIXES = []


class SourceFileLoader:
    def __init__(self, *args, **kwargs):
        raise ImportError("there are no files here")


SourcelessFileLoader = ExtensionFileLoader = NamespaceLoader = FileFinder = PathFinder = SourceFileLoader


def all_suffixes():
    return SOURCE_SUFFIXES + BYTECODE_SUFFIXES
