"""Exercises as sets for nbgrader alone have them: what is told of the language itself, each with a right and a wrong
answer, and what stock nbgrader gives for these and for an empty one.
"""

from __future__ import annotations

from dataclasses import dataclass

HIDDEN = "### BEGIN HIDDEN TESTS\n{}\n### END HIDDEN TESTS"


@dataclass
class Kind:
    """An exercise: the cells of its answer and its tests, what is given before and after the answer, a wrong answer.

    `points` are what the right, the wrong and the empty answer get; the cell is worth the first. `also` are further
    test cells with their points. `refused` are the numbers of those that say nothing of copies of the answers.
    """

    answer: str
    wrong: str
    test: str
    before: str = ""
    after: str = ""
    points: tuple[float, float, float] = (4, 0, 0)
    also: tuple[tuple[str, tuple[float, float, float]], ...] = ()
    refused: tuple[int, ...] = ()

    @property
    def solution(self) -> str:
        return f"### BEGIN SOLUTION\n{self.answer}\n### END SOLUTION"

    def tests(self, name: str, is_refused: bool = False) -> dict[str, tuple[str, tuple[float, float, float]]]:
        """Its test cells by name that can be judged, or cannot, each with what the three answers get."""
        every = enumerate([(self.test, self.points), *self.also], 1)
        judged = {number: one for number, one in every if (number in self.refused) == is_refused}
        return {f"{name}-tests{f'-{number}' if number > 1 else ''}": one for number, one in judged.items()}


def returns(name: str, value: str) -> str:
    return f"def {name}(x):\n    return {value}"


ALL, NONE = (2, 2, 0), (2, 0, 0)  # of a further test cell: the wrong answer is right in it, or is not

VECTOR = """class Vector:
    def __init__(self, x, y):
        self.x, self.y = x, y
    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)
    def __mul__(self, factor):
        return Vector(self.x * factor, self.y * factor)
    __rmul__ = __mul__
    def __eq__(self, other):
        return (self.x, self.y) == (other.x, other.y)
    def __repr__(self):
        return f"Vector({self.x}, {self.y})"
    def __abs__(self):
        return (self.x ** 2 + self.y ** 2) ** 0.5
    def __bool__(self):
        return bool(self.x or self.y)"""
SHELF = '''class Shelf:
    def __init__(self, books=()):
        self._books = list(books)
        self.label = "none"
    def __len__(self):
        return len(self._books)
    def __getitem__(self, place):
        return self._books[place]
    def __setitem__(self, place, book):
        self._books[place] = book
    def __contains__(self, book):
        return book.lower() in (b.lower() for b in self._books)
    def __iter__(self):
        return iter(sorted(self._books))
    def __call__(self, letter):
        return [b for b in self._books if b.startswith(letter)]
    def __enter__(self):
        self.label = "open"
        return self
    def __exit__(self, *error):
        self.label = "closed"'''
ACCOUNT = """class Account:
    rate = 0.5
    def __init__(self, owner):
        self.owner, self._balance = owner, 0
    @property
    def balance(self):
        return self._balance
    @balance.setter
    def balance(self, value):
        if value < 0:
            raise ValueError("no debts")
        self._balance = value
    @classmethod
    def of_two(cls, one, two):
        return cls(f"{one} and {two}")
    @staticmethod
    def interest(sum_):
        return Account.rate * sum_

class Savings(Account):
    def interest_now(self):
        return self.interest(self.balance)"""
CLASSES = {
    "class-operators": Kind(
        VECTOR,
        VECTOR.replace("self.y + other.y", "self.y"),
        "assert Vector(1, 2) + Vector(3, 4) == Vector(4, 6)",
        also=(
            ("v = Vector(1, 2)\nassert 2 * v == Vector(2, 4)\nassert (v * 3).y == 6", ALL),
            ("assert repr(Vector(1, 2)) == 'Vector(1, 2)'\nassert f'{Vector(0, 1)}' == 'Vector(0, 1)'", ALL),
            ("assert abs(Vector(3, 4)) == 5 and not Vector(0, 0) and Vector(0, 1)", ALL),
            ("assert isinstance(Vector(1, 2), Vector)\nassert not isinstance(3, Vector)", ALL),
            (
                "total = Vector(0, 0)\nfor n in range(3):\n    total += Vector(n, n)\nassert (total.x, total.y) == (3, 3)",
                NONE,
            ),
        ),
    ),
    "class-containers": Kind(
        SHELF,
        SHELF.replace("book.lower() in (b.lower() for b in self._books)", "book in self._books"),
        "shelf = Shelf(['Emma', 'Dune'])\nassert 'EMMA' in shelf\nassert 'Ulysses' not in shelf",
        also=(
            (
                "shelf = Shelf(['Emma', 'Dune'])\nassert len(shelf) == 2 and shelf[0] == 'Emma' and shelf[-1] == 'Dune'",
                ALL,
            ),
            (
                "shelf = Shelf(['Emma', 'Dune'])\nassert list(shelf) == ['Dune', 'Emma']\nassert [b for b in shelf][0] == 'Dune'",
                ALL,
            ),
            (
                "shelf = Shelf(['Emma'])\nshelf[0] = 'Ida'\nassert shelf('I') == ['Ida'] and shelf._books == ['Ida']",
                ALL,
            ),
            ("with Shelf() as shelf:\n    assert shelf.label == 'open'\nassert shelf.label == 'closed'", ALL),
        ),
    ),
    "class-attributes": Kind(
        ACCOUNT,
        ACCOUNT.replace("if value < 0", "if value < -100"),
        "account = Account('ada')\naccount.balance = 5\nassert account.balance == 5\n"
        "try:\n    account.balance = -1\nexcept ValueError as error:\n    assert 'debts' in str(error)\n"
        "else:\n    raise AssertionError('no error')",
        also=(
            ("both = Account.of_two('ada', 'ben')\nassert both.owner == 'ada and ben' and both.balance == 0", ALL),
            ("assert issubclass(Savings, Account) and isinstance(Savings('a'), Account)", ALL),
            ("mine = Savings('a')\nmine.balance = 10\nassert mine.interest_now() == 5 == Account.interest(10)", ALL),
            (
                "assert hasattr(Account, 'of_two') and not hasattr(Account('a'), 'age')\nassert Account.__name__ == 'Account'",
                ALL,
            ),
            (
                "a = Account('a')\nsetattr(a, 'note', 'new')\nassert getattr(a, 'note') == 'new' and getattr(a, 'no', 7) == 7",
                ALL,
            ),
        ),
    ),
    "class-list-of-nodes": Kind(
        "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\n\n"
        "def from_list(values):\n    head = None\n    for value in reversed(values):\n        head = Node(value, head)\n"
        "    return head",
        "class Node:\n    def __init__(self, value, next=None):\n        self.value, self.next = value, next\n\n"
        "def from_list(values):\n    head = None\n    for value in values:\n        head = Node(value, head)\n    return head",
        "node, seen = from_list([1, 2, 3]), []\nwhile node is not None:\n    seen.append(node.value)\n    node = node.next\n"
        "assert seen == [1, 2, 3]",
        also=(("assert from_list([]) is None", (2, 2, 0)),),
    ),
    "class-dataclass": Kind(
        "from dataclasses import dataclass\n\n@dataclass(order=True)\nclass Card:\n    rank: int\n    suit: str = 'spades'",
        "from dataclasses import dataclass\n\n@dataclass\nclass Card:\n    rank: int\n    suit: str = 'spades'",
        "assert Card(2) < Card(3)\nassert max(Card(2), Card(5), Card(4)).rank == 5\n"
        "assert [c.rank for c in sorted([Card(3), Card(1)])] == [1, 3]",
        also=(("assert Card(2) == Card(2, 'spades') and Card(2) != Card(2, 'hearts')", ALL),),
    ),
    "class-enum": Kind(
        "from enum import Enum, IntEnum\n\nclass Light(Enum):\n    RED = 1\n    GREEN = 2\n\nclass Size(IntEnum):\n    S = 1\n    L = 3",
        "from enum import Enum, IntEnum\n\nclass Light(Enum):\n    RED = 1\n    GREEN = 3\n\nclass Size(IntEnum):\n    S = 1\n    L = 3",
        "assert Light.GREEN.value == 2 and Light(2) == Light.GREEN and Light.RED.name == 'RED'",
        also=(("assert Size.L > Size.S and Size.L == 3 and Size.L + 1 == 4", ALL),),
    ),
    "class-identity": Kind(
        "class Only:\n    _one = None\n    def __new__(cls):\n        cls._one = cls._one or super().__new__(cls)\n"
        "        return cls._one",
        "class Only:\n    pass",
        "first, second = Only(), Only()\nassert first is second",
        refused=(1,),
    ),
    "a-copy-is-another-list": Kind(
        returns("copied", "list(x)"),
        returns("copied", "x"),
        "given = [1, 2]\nnew = copied(given)\nassert new == given and new is not given",
        refused=(1,),
    ),
    "changed-in-place": Kind(
        "def doubled(values):\n    for n in range(len(values)):\n        values[n] *= 2",
        "def doubled(values):\n    values = [2 * v for v in values]",
        "numbers = [1, 2, 3]\nassert doubled(numbers) is None\nassert numbers == [2, 4, 6]",
    ),
    "changed-dictionary": Kind(
        "def count(words, table):\n    for w in words:\n        table[w] = table.get(w, 0) + 1",
        "def count(words, table):\n    for w in words:\n        table[w] = 1",
        "table = {'a': 1}\ncount(['a', 'b'], table)\nassert table == {'a': 2, 'b': 1}",
    ),
    "not-changed": Kind(
        returns("in_order", "sorted(x)"),
        "def in_order(x):\n    x.sort()\n    return x",
        "given = [2, 1]\nassert in_order(given) == [1, 2]\nassert given == [2, 1], 'the list that was given is changed'",
    ),
}

RAISING = """def root(x):
    if not isinstance(x, (int, float)):
        raise TypeError(f"{x!r} is no number")
    if x < 0:
        raise ValueError("below zero", x)
    return x ** 0.5"""
EXCEPTIONS = {
    "raises-in-try": Kind(
        RAISING,
        RAISING.replace("TypeError(f", "RuntimeError(f"),
        "try:\n    root('a')\nexcept TypeError:\n    pass\nelse:\n    assert False, 'no error'",
        also=(
            (
                "try:\n    root(-4)\n    done = True\nexcept ValueError as error:\n    done = False\n"
                "    assert error.args == ('below zero', -4)\nassert not done",
                ALL,
            ),
            ("import numpy as np\nnp.testing.assert_raises(ValueError, root, -1)\nassert root(9) == 3", ALL),
            ("import unittest\ncase = unittest.TestCase()\nwith case.assertRaises(TypeError):\n    root([])", NONE),
            (
                "from contextlib import suppress\nfound = 'nothing'\nwith suppress(ArithmeticError, TypeError):\n"
                "    found = root('b')\nassert found == 'nothing'",
                NONE,
            ),
            (
                "kinds = []\nfor bad in ('a', -1, None):\n    try:\n        root(bad)\n    except Exception as error:\n"
                "        kinds.append(type(error).__name__)\nassert kinds == ['TypeError', 'ValueError', 'TypeError']",
                NONE,
            ),
        ),
    ),
    "raises-lookups": Kind(
        "def price(name):\n    return {'tea': 2}[name]\n\ndef third(values):\n    return values[2]",
        "def price(name):\n    return {'tea': 2}.get(name)\n\ndef third(values):\n    return values[2]",
        "try:\n    price('milk')\nexcept KeyError as missing:\n    assert missing.args[0] == 'milk'\nelse:\n    raise AssertionError",
        also=(
            (
                "try:\n    third([1])\n    assert False\nexcept LookupError as error:\n    assert 'range' in str(error)",
                ALL,
            ),
        ),
    ),
    "raises-a-given-class": Kind(
        "def heat(x):\n    if x < 0:\n        raise TooCold(x)\n    return x + 1",
        "def heat(x):\n    if x < 0:\n        raise ValueError(x)\n    return x + 1",
        "try:\n    heat(-3)\nexcept TooCold as error:\n    assert error.args == (-3,)\nassert heat(2) == 3",
        before="class TooCold(Exception):\n    pass",
    ),
    "raises-an-own-class": Kind(
        "class Empty(Exception):\n    pass\n\ndef first(values):\n    if not values:\n        raise Empty('no values')\n    return values[0]",
        "class Empty(Exception):\n    pass\n\ndef first(values):\n    return values[0] if values else None",
        "try:\n    first([])\n    raised = False\nexcept Empty:\n    raised = True\nassert raised and first([3]) == 3",
        refused=(1,),
    ),
    "raises-nothing": Kind(
        "def safe(x):\n    try:\n        return 1 / x\n    except ZeroDivisionError:\n        return None",
        "def safe(x):\n    return 1 / x",
        "assert safe(0) is None and safe(4) == 0.25",
    ),
    "raises-while-answering": Kind("begun = 5\n1 / 0", "begun = 4\n1 / 0", "assert begun == 5"),
    "does-not-raise-at-all": Kind(
        "def guarded(x):\n    assert x > 0, 'only above zero'\n    return x",
        "def guarded(x):\n    return x",
        "try:\n    guarded(-1)\nexcept AssertionError as error:\n    assert 'above' in str(error)\nelse:\n    raise RuntimeError('too kind')",
    ),
}

GENERATORS = {
    "generator": Kind(
        "def squares(n):\n    for k in range(n):\n        yield k * k",
        "def squares(n):\n    for k in range(n):\n        yield k + k",
        "assert list(squares(4)) == [0, 1, 4, 9]",
        also=(
            (
                "found = squares(2)\nassert next(found) == 0 and next(found) == 1\ntry:\n    next(found)\n"
                "    assert False\nexcept StopIteration:\n    pass",
                NONE,
            ),
            ("import types\nassert isinstance(squares(2), types.GeneratorType)", (2, 2, 0)),
            ("assert sum(squares(4)) == 14 and max(squares(4)) == 9 and 4 in squares(3)", NONE),
        ),
    ),
    "generator-without-end": Kind(
        "def naturals():\n    n = 0\n    while True:\n        yield n\n        n += 1",
        "def naturals():\n    n = 1\n    while True:\n        yield n\n        n += 1",
        "from itertools import islice\nassert list(islice(naturals(), 3)) == [0, 1, 2]",
        also=(
            (
                "seen = []\nfor n in naturals():\n    if n > 2:\n        break\n    seen.append(n)\nassert seen == [0, 1, 2]",
                NONE,
            ),
            ("assert [pair for pair, _ in zip(zip(naturals(), 'ab'), range(2))] == [(0, 'a'), (1, 'b')]", NONE),
        ),
    ),
    "generator-that-is-sent-to": Kind(
        "def running():\n    total = 0\n    while True:\n        total += yield total",
        "def running():\n    total = 0\n    while True:\n        total = yield total",
        "adder = running()\nnext(adder)\nassert adder.send(3) == 3 and adder.send(4) == 7\nadder.close()",
    ),
    "iterator-class": Kind(
        "class Down:\n    def __init__(self, n):\n        self.n = n\n    def __iter__(self):\n        return self\n"
        "    def __next__(self):\n        if self.n == 0:\n            raise StopIteration\n        self.n -= 1\n        return self.n + 1",
        "class Down:\n    def __init__(self, n):\n        self.n = n\n    def __iter__(self):\n        return self\n"
        "    def __next__(self):\n        if self.n == 0:\n            raise StopIteration\n        self.n -= 1\n        return self.n",
        "down = Down(3)\nassert iter(down) == down and next(down) == 3\nassert list(down) == [2, 1]",
    ),
    "function-in-a-function": Kind(
        "def adder(n):\n    def add(x):\n        return x + n\n    return add\n\ndef shout(f):\n    def loud(*args):\n"
        "        return f(*args).upper()\n    return loud",
        "def adder(n):\n    def add(x):\n        return x - n\n    return add\n\ndef shout(f):\n    def loud(*args):\n"
        "        return f(*args).upper()\n    return loud",
        "add_two = adder(2)\nassert add_two(3) == 5 and adder(0)(1) == 1",
        also=(("@shout\ndef hello(name):\n    return f'hello {name}'\nassert hello('ada') == 'HELLO ADA'", ALL),),
    ),
}
