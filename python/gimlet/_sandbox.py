"""What is defined in the sandbox before an agent's code runs. It is executed there, never in this process.

Functions of the program are called by one host call. Values that JSON does not know travel in a tagged form, and those
that cannot leave the program, such as images, stay there: the code has a stand-in, which it can pass on.
"""

PRELUDE = r'''
class HostObject:
    """A value of the program. The code can pass it on to tools and give it as the answer."""

    def __init__(self, key, text):
        self._key = key
        self._text = text

    def __repr__(self):
        return self._text


def _gimlet_out(value):
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, HostObject):
        return {"_gimlet": "object", "key": value._key}
    if isinstance(value, list):
        return [_gimlet_out(item) for item in value]
    if isinstance(value, (tuple, set, frozenset)):
        kind = "tuple" if isinstance(value, tuple) else "set"
        return {"_gimlet": kind, "items": [_gimlet_out(item) for item in value]}
    if isinstance(value, dict):
        if all(isinstance(key, str) for key in value) and "_gimlet" not in value:
            return {key: _gimlet_out(item) for key, item in value.items()}
        return {"_gimlet": "dict", "items": [[_gimlet_out(key), _gimlet_out(item)] for key, item in value.items()]}
    if isinstance(value, complex):
        return {"_gimlet": "complex", "items": [value.real, value.imag]}
    if isinstance(value, (bytes, bytearray)):
        return {"_gimlet": "bytes", "items": list(value)}
    if hasattr(value, "__iter__") and hasattr(value, "__next__"):
        return [_gimlet_out(item) for item in value]
    return {"_gimlet": "text", "text": repr(value)}


def _gimlet_in(value):
    if isinstance(value, list):
        return [_gimlet_in(item) for item in value]
    if not isinstance(value, dict):
        return value
    kind = value.get("_gimlet")
    if kind is None:
        return {key: _gimlet_in(item) for key, item in value.items()}
    if kind == "object":
        return HostObject(value["key"], value["text"])
    items = [_gimlet_in(item) for item in value["items"]]
    if kind == "tuple":
        return tuple(items)
    if kind == "set":
        return set(items)
    if kind == "dict":
        return {key: item for key, item in items}
    if kind == "complex":
        return complex(*items)
    return bytes(items)


def _gimlet_tool(_gimlet_name):
    def call(*args, **kwargs):
        answer = _gimlet_call(name=_gimlet_name, args=_gimlet_out(list(args)), kwargs=[[key, _gimlet_out(item)] for key, item in kwargs.items()])
        if "raised" in answer:
            import builtins
            kind = getattr(builtins, answer["raised"], None)
            if isinstance(kind, type) and issubclass(kind, Exception):
                raise kind(answer["text"])
            raise RuntimeError(answer["raised"] + ": " + answer["text"])
        return _gimlet_in(answer["value"])
    call.__name__ = _gimlet_name
    return call
'''

#: Makes `final_answer` the program's own function, whatever its arguments are. The sandbox lets no code define that name,
#: so it is put in its place.
ANSWER = r'''
if "_gimlet_answer" not in globals():
    _gimlet_answer = final_answer
    def _gimlet_answers(*args, **kwargs):
        _gimlet_answer(_gimlet_out(_gimlet_tool("final_answer")(*args, **kwargs)))
    globals()["final_answer"] = _gimlet_answers
'''
