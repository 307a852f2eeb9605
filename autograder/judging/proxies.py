"""Stand-ins for a student's functions and objects: a test cell uses them like any others, each use is a request."""

from __future__ import annotations

import sys
import types
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.judging.problems import StudentRaised
from autograder.results import ERROR
from autograder.sandbox.inside.operations import BINARY, COMPARISONS, OPERATIONS, UNARY

if TYPE_CHECKING:
    from autograder.judging.client import Client, Promise

MOST_ITEMS = 10_000


@dataclass(eq=False, repr=False)
class Proxy:
    """Stands for a student's function or object; calls, attributes, items and length are requests.

    It may stand for what a request will give that is not sent yet: then its attributes wait too, and all that waits
    goes with the next request whose answer is needed. `settled` gives what it turned out to be.
    """

    _client: Client
    _path: str
    _id: int | None = None
    _type: str = "object"
    _mro: tuple[str, ...] = ()
    _root: str | None = None
    _promise: Promise | None = None
    _changed: tuple[str, ...] = ()  # the arguments that the latest call changed in place, which sets read

    def __repr__(self) -> str:
        return f"<{self._type} in the student's process>"

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        promise = self._client.ask(self, "call", args=args, kwargs=kwargs)
        value = self._client.read(promise)
        self._changed = promise.changed
        return value

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._promise is not None:
            return self._later("attribute", name=name)
        return self._answer("attribute", name=name)

    def _later(self, op: str, **details: Any) -> Proxy:
        promise = self._client.ask(self, op, **details)
        return Proxy(self._client, promise.path, _promise=promise)

    def _answer(self, op: str, **details: Any) -> Any:
        return self._client.read(self._client.ask(self, op, **details))

    def __getitem__(self, key: Any) -> Any:
        return self._answer("item", key=key)

    def __len__(self) -> int:
        value = self._answer("length")
        if type(value) is not int or value < 0:
            raise StudentRaised(ERROR, "the answer's length is not a number")
        return value

    def __iter__(self) -> Iterator[Any]:
        value = self._answer("items", most=MOST_ITEMS)
        return iter(value if isinstance(value, list) else [])

    def __bool__(self) -> bool:
        return True

    def __array__(self, *args: Any, **kwargs: Any) -> NoReturn:
        raise StudentRaised(ERROR, f"the answer is a {self._type}, where an array is asked for")


def later(function: Any, *args: Any, **kwargs: Any) -> Any:
    """`function(*args, **kwargs)`, asked in the same message as what follows; `settled` gives its result.

    A function that is here is called at once.
    """
    if not isinstance(function, Proxy):
        return function(*args, **kwargs)
    return function._later("call", args=args, kwargs=kwargs)


def settled(value: Any) -> Any:
    """What a proxy of `later` turned out to be: plain data, or a proxy of the student's object. Others stay.

    Raises StudentProblem where that request, or one before it, failed.
    """
    if isinstance(value, Proxy) and value._promise is not None:
        found = value._client.read(value._promise)
        value._changed = value._promise.changed
        return found
    return value


OWN = ("_client", "_path", "_id", "_type", "_mro", "_root", "_promise", "_changed")
TOLD = ("__name__", "__qualname__", "__doc__", "__module__", "__annotations__")  # others numpy and Python act upon
JUDGING = {*COMPARISONS, *BINARY, *(f"i{name.rstrip('_')}" for name in BINARY), "contains"}
PLAIN_SIZE = type("Plain", (), {}).__basicsize__
BUILT_IN = (dict, list, tuple, set, frozenset, str, bytes, int, float, complex)  # compiled code looks at their type
PYTHONS = {f"builtins.{kind.__name__}": kind for kind in (*BUILT_IN, *vars(types).values()) if isinstance(kind, type)}


class Double(Proxy):
    """Stands for an object in test cells without checks, which may do with it whatever Python can.

    Operators, printing, `next`, `isinstance` and setting attributes are requests, too. What a test cell wants may be
    the operand of an operator or the argument of a method, and an object of a student's could agree with anything. So
    operators are used here where the object holds plain data, and where it holds none it is told only what the
    reference's object was told in its place.
    """

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") and name not in TOLD:
            raise AttributeError(name)
        return self._answer("attribute", name=name)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        if (args or kwargs) and self._root is None:
            self._tell("call")
        return super().__call__(*args, **kwargs)

    def _tell(self, name: str) -> None:
        if not self._client.may_ask(f"{self._path} {name}"):
            raise StudentRaised(ERROR, f"`{self._path}` gives a {self._type}, where another kind of value is asked for")

    def __setattr__(self, name: str, value: Any) -> None:
        if name in OWN:
            object.__setattr__(self, name, value)
        else:
            self._operate("setattr", self, name, value)

    def __delattr__(self, name: str) -> None:
        self._operate("delattr", self, name)

    def _operate(self, name: str, *args: Any) -> Any:
        if name in JUDGING:
            held = [a._answer("plain") if isinstance(a, Double) else a for a in args]
            if not any(isinstance(a, Double) for a in held):
                return OPERATIONS[name](*held)
            self._tell(name)
        return self._answer("operate", name=name, args=args, kwargs={})

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """The first of the object's classes that is known here, for `isinstance` with classes of libraries.

        Of classes whose objects are more than a dictionary, as tensors are, compiled code would read what is not here.
        """
        for full in self._mro:
            module, _, name = full.rpartition(".")
            found = getattr(sys.modules.get(module), name, None)
            if isinstance(found, type) and module != "__main__" and found.__basicsize__ == PLAIN_SIZE:
                return found
            if full in PYTHONS:
                return PYTHONS[full]
        return Double

    @property
    def __doc__(self) -> Any:  # type: ignore[override]
        return self._answer("attribute", name="__doc__")

    def __iter__(self) -> Iterator[Any]:
        found = self._operate("iter", self)
        return found if isinstance(found, Double) else iter(found)

    def __next__(self) -> Any:
        try:
            return self._operate("next", self)
        except StudentRaised as error:
            raise StopIteration if error.type_name == "StopIteration" else error from None

    def __len__(self) -> int:
        return int(self._operate("len", self))

    def __bool__(self) -> bool:
        return bool(self._operate("bool", self))

    def __hash__(self) -> int:
        return int(self._operate("hash", self))

    def __repr__(self) -> str:
        return str(self._operate("repr", self))

    def __str__(self) -> str:
        return str(self._operate("str", self))

    def __format__(self, form: str) -> str:
        return str(self._operate("format", self, form))

    def __round__(self, digits: int | None = None) -> Any:
        return self._operate("round", self, digits)

    def __dir__(self) -> Any:
        return self._operate("dir", self)

    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return self._operate("array", self)

    def __contains__(self, item: Any) -> bool:
        return bool(self._operate("contains", self, item))

    def __instancecheck__(self, value: Any) -> bool:
        return bool(self._operate("isinstance", value, self))

    def __subclasscheck__(self, kind: Any) -> bool:
        return bool(self._operate("issubclass", kind, self))

    def __enter__(self) -> Any:
        return self._operate("enter", self)

    def __exit__(self, kind: Any, error: Any, trace: Any) -> None:
        self._operate("exit", self)


def _method(name: str, is_turned: bool = False) -> Callable[..., Any]:
    def method(self: Double, *others: Any) -> Any:
        return self._operate(name, *others, self) if is_turned else self._operate(name, self, *others)

    return method


for _name in (*COMPARISONS, *BINARY, *UNARY, "getitem", "setitem", "delitem", "int", "float", "complex", "reversed"):
    setattr(Double, f"__{_name.rstrip('_')}__", _method(_name))
for _name in BINARY:
    setattr(Double, f"__r{_name.rstrip('_')}__", _method(_name, is_turned=True))
    setattr(Double, f"__i{_name.rstrip('_')}__", _method(f"i{_name.rstrip('_')}"))
