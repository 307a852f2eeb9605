"""Stand-ins for a student's functions and objects: a test cell uses them like any others, each use is a request."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from autograder.judging.problems import StudentRaised
from autograder.results import ERROR

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
