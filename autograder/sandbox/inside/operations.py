"""What can be done with an object besides calling it and asking for its attributes, by name: for both sides."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

COMPARISONS = ("eq", "ne", "lt", "le", "gt", "ge")
BINARY = ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "matmul", "and_", "or_", "xor", "lshift", "rshift")
UNARY = ("neg", "pos", "invert", "abs", "index")
CONTAINERS = ("getitem", "setitem", "delitem", "contains")
BUILT_IN = (bool, int, float, complex, str, repr, hash, len, iter, next, reversed, round, format, dir)

OPERATIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(operator, name) for name in (*COMPARISONS, *BINARY, *UNARY, *CONTAINERS)},
    **{f"i{name.rstrip('_')}": getattr(operator, f"i{name.rstrip('_')}") for name in BINARY},
    **{function.__name__: function for function in BUILT_IN},
    **{function.__name__: function for function in (setattr, delattr, isinstance, issubclass)},
    "divmod": divmod,
    "array": np.asarray,
    "enter": lambda manager: type(manager).__enter__(manager),
    "exit": lambda manager: type(manager).__exit__(manager, None, None, None),
}
