"""Exercises of sets for nbgrader alone: what stands around functions, such as printed text, files, names and libraries."""

from __future__ import annotations

from plain_kinds import ALL, HIDDEN, NONE, Kind, returns

FILES = {
    "measures.csv": b"name,length\nant,2\nbee,4\ncat,30\n",
    "grid.txt": b"1 2 3\n4 5 6\n",
    "deep/settings.json": b'{"rate": 0.25, "names": ["a", "b"]}',
    "units.py": b"INCH = 2.54\n\ndef to_cm(inches):\n    return inches * INCH\n",
}
CAPTURE = (
    "import io\nfrom contextlib import redirect_stdout\nsaid = io.StringIO()\nwith redirect_stdout(said):\n    {}\n"
)
PRINTED = {
    "prints": Kind(
        "def hello(name):\n    print('Hello,', name)\n    print('bye')",
        "def hello(name):\n    print('Hello', name)",
        CAPTURE.format("hello('Ada')") + "assert said.getvalue() == 'Hello, Ada\\nbye\\n'",
        also=(
            (
                "import io, sys\nkept, sys.stdout = sys.stdout, io.StringIO()\nhello('Ben')\ntext = sys.stdout.getvalue()\n"
                "sys.stdout = kept\nassert 'Ben' in text and text.count('\\n') == 2",
                NONE,
            ),
            ("assert hello('x') is None", ALL),
        ),
    ),
    "prints-nothing": Kind(
        returns("quiet", "x + 1"),
        "def quiet(x):\n    print(x + 1)\n    return x + 1",
        CAPTURE.format("found = quiet(2)")
        + "assert found == 3 and said.getvalue() == '', 'return it, do not print it'",
    ),
    "prints-a-table": Kind(
        "def table(n):\n    for k in range(1, n + 1):\n        print(f'{k:>3}', end='' if k % 2 else '\\n')",
        "def table(n):\n    for k in range(1, n + 1):\n        print(f'{k:>3}')",
        CAPTURE.format("table(4)") + "assert said.getvalue().split('\\n')[0] == '  1  2'",
    ),
    "warns-on-stderr": Kind(
        "import sys\n\ndef ratio(x):\n    return 1 / x if x else None",
        "import sys\n\ndef ratio(x):\n    if not x:\n        print('nothing to divide by', file=sys.stderr)\n        return None\n    return 1 / x",
        "assert ratio(0) is None and ratio(2) == 0.5",
    ),
    "warns": Kind(
        "def logs(values):\n    return [np.log(v) if v > 0 else -np.inf for v in values]",
        "def logs(values):\n    return list(np.log(np.array(values, dtype=float)))",
        "assert logs([1, 0])[1] == -np.inf",
        before="import numpy as np",
    ),
    "magic-that-captures": Kind(
        "def shout(x):\n    print(x.upper())",
        "def shout(x):\n    print(x)",
        "%%capture said\nshout('a')",
        points=(2, 2, 0),
        also=(
            (
                "import io\nimport contextlib\nout = io.StringIO()\nwith contextlib.redirect_stdout(out):\n    shout('a')\n"
                "assert out.getvalue().strip() == 'A'",
                NONE,
            ),
        ),
        refused=(1,),
    ),
}
ASK = "def ask_age():\n    age = int(input('Age? '))\n    return 'adult' if age >= 18 else 'child'"
INPUT = {
    "asks": Kind(
        ASK,
        ASK.replace(">=", ">"),
        "import builtins\nkept, builtins.input = builtins.input, lambda prompt='': '18'\n"
        "try:\n    assert ask_age() == 'adult'\nfinally:\n    builtins.input = kept",
        also=(
            (
                "from unittest.mock import patch\nwith patch('builtins.input', side_effect=['3', '40']):\n"
                "    assert [ask_age(), ask_age()] == ['child', 'adult']",
                ALL,
            ),
        ),
        refused=(1, 2),
    ),
    "asks-by-a-name-of-the-notebook": Kind(
        "def ask_twice():\n    return input('a') + input('b')",
        "def ask_twice():\n    return input('a') * 2",
        "answers = iter(['x', 'y'])\ninput = lambda prompt='': next(answers)\nassert ask_twice() == 'xy'\ndel input",
        refused=(1,),
    ),
    "is-handed-a-way-to-ask": Kind(
        "def ask_with(read):\n    return int(read('Number? ')) + 1",
        "def ask_with(read):\n    return int(read('Number? '))",
        "asked = []\ndef read(prompt):\n    asked.append(prompt)\n    return '41'\nassert ask_with(read) == 42 and asked == ['Number? ']",
    ),
}
NAMES = {
    "test-sets-a-global": Kind(
        "def net(gross):\n    return gross - rate * gross",
        "def net(gross):\n    return gross - 0.25 * gross",
        "rate = 0.5\nassert net(10) == 5",
        before="rate = 0.25",
        refused=(1,),
    ),
    "test-replaces-a-helper": Kind(
        "def fetch():\n    return [1, 2]\n\ndef total():\n    return sum(fetch())",
        "def fetch():\n    return [1, 2]\n\ndef total():\n    return 3",
        "fetch = lambda: [4, 5]\nassert total() == 9",
        refused=(1,),
    ),
    "test-sets-an-attribute": Kind(
        "class Plan:\n    steps = 3\n\ndef run(plan):\n    return plan.steps * plan.size",
        "class Plan:\n    steps = 3\n\ndef run(plan):\n    return 3 * plan.size",
        "plan = Plan()\nplan.steps, plan.size = 2, 5\nassert run(plan) == 10",
    ),
    "names-of-earlier-tests": Kind(
        "def area(w, h):\n    return w * h\n\ndef rim(w, h):\n    return 2 * (w + h)",
        "def area(w, h):\n    return w * h\n\ndef rim(w, h):\n    return w + h",
        "SIDES = [(1, 2), (3, 4)]\n\ndef close(a, b):\n    return abs(a - b) < 1e-9\n\nassert close(area(*SIDES[0]), 2)",
        points=(4, 4, 0),
        also=(
            ("assert all(close(area(w, h), w * h) for w, h in SIDES)", ALL),
            ("found = [rim(w, h) for w, h in SIDES]\nassert close(found[0], 6)", NONE),
            ("assert found == [6, 14]", NONE),
        ),
    ),
    "import-of-a-test": Kind(
        "def hypot(a, b):\n    return (a * a + b * b) ** 0.5",
        "def hypot(a, b):\n    return a + b",
        "import math as maths\nassert maths.isclose(hypot(3, 4), 5)",
        also=(("assert maths.isclose(hypot(6, 8), 10)", NONE),),
    ),
    "counted-by-a-global": Kind(
        "clicks = 0\n\ndef click():\n    global clicks\n    clicks += 1\n    return clicks",
        "clicks = 0\n\ndef click():\n    return 1",
        "assert [click(), click()] == [1, 2]",
        also=(("before = clicks\nclick()\nassert clicks == before + 1", NONE),),
        refused=(2,),
    ),
    "is-not-there": Kind(
        "x_squared = 9\ndel x_squared\nkept = 9",
        "x_squared = 9\nkept = 9",
        "assert 'x_squared' not in globals() and kept == 9",
        refused=(1,),
    ),
}
ON_DISK = {
    "reads-a-table": Kind(
        "import csv\n\ndef longest(path):\n    with open(path) as file:\n        rows = list(csv.DictReader(file))\n"
        "    return max(rows, key=lambda r: int(r['length']))['name']",
        "import csv\n\ndef longest(path):\n    with open(path) as file:\n        rows = list(csv.DictReader(file))\n"
        "    return max(rows, key=lambda r: r['length'])['name']",
        "assert longest('measures.csv') == 'cat'",
    ),
    "reads-at-once": Kind(
        "import json\nwith open('deep/settings.json') as file:\n    settings = json.load(file)",
        "settings = {'rate': 0.5}",
        "assert settings['rate'] == 0.25 and settings['names'] == ['a', 'b']",
        also=(("import json\nassert settings == json.load(open('deep/settings.json'))", NONE),),
    ),
    "is-given-a-file": Kind(
        "row_sums = grid.sum(axis=1)",
        "row_sums = grid.sum(axis=0)",
        "assert row_sums.tolist() == [6, 15]",
        before="import numpy as np\ngrid = np.loadtxt('grid.txt')",
    ),
    "uses-a-module": Kind(
        "def height(feet, inches):\n    return to_cm(12 * feet + inches)",
        "def height(feet, inches):\n    return to_cm(10 * feet + inches)",
        "import units\nassert abs(height(1, 1) - 13 * units.INCH) < 1e-9",
        before="from units import to_cm",
    ),
    "writes-a-file": Kind(
        "with open('out.txt', 'w') as file:\n    file.write('three lines\\n' * 3)",
        "with open('out.txt', 'w') as file:\n    file.write('two lines\\n' * 2)",
        "with open('out.txt') as file:\n    assert len(file.readlines()) == 3",
        refused=(1,),
    ),
}
MAGICS = {
    "magic-given": Kind(
        returns("fifth", "x / 5"),
        returns("fifth", "x / 4"),
        "assert fifth(10) == 2",
        before="%matplotlib inline\n%load_ext autoreload\nscale = 5",
    ),
    "magic-in-an-answer": Kind("%time slow = sum(range(10))", "%time slow = sum(range(9))", "assert slow == 45"),
    "magic-of-a-cell": Kind(
        "%%time\nmade = [n for n in range(3)]", "%%time\nmade = [n for n in range(2)]", "assert made == [0, 1, 2]"
    ),
    "shell-line": Kind("!echo nothing\nseen = 7", "!echo nothing\nseen = 8", "assert seen == 7"),
    "magic-in-a-test": Kind(
        returns("sixth", "x / 6"), returns("sixth", "x / 5"), "%precision 3\nassert sixth(12) == 2", refused=(1,)
    ),
}
DATA = {
    "data-decimal": Kind(
        "from decimal import Decimal\n\ndef bill(*prices):\n    return sum(map(Decimal, prices), Decimal(0))",
        "def bill(*prices):\n    return sum(map(float, prices))",
        "from decimal import Decimal\nassert bill('0.1', '0.2') == Decimal('0.3')",
    ),
    "data-fraction": Kind(
        "from fractions import Fraction\n\ndef share(a, b):\n    return Fraction(a, a + b)",
        "def share(a, b):\n    return a / (a + b)",
        "from fractions import Fraction\nassert isinstance(share(1, 2), Fraction) and share(1, 2) + share(2, 1) == 1",
    ),
    "data-dates": Kind(
        "from datetime import date, timedelta\n\ndef due(day):\n    return day + timedelta(days=14)",
        "from datetime import date, timedelta\n\ndef due(day):\n    return day + timedelta(days=10)",
        "import datetime\nassert due(datetime.date(2024, 2, 20)) == datetime.date(2024, 3, 5)",
        also=(("assert due(datetime.date(2024, 1, 1)).isoformat() == '2024-01-15'", NONE),),
    ),
    "data-counter": Kind(
        "from collections import Counter\n\ndef letters(text):\n    return Counter(text)",
        "from collections import Counter\n\ndef letters(text):\n    return {c: text.count(c) for c in text}",
        "assert letters('abba') == {'a': 2, 'b': 2}",
        points=(4, 4, 0),
        also=(("from collections import Counter\nassert letters('aab').most_common(1) == [('a', 2)]", NONE),),
    ),
    "data-namedtuple": Kind(
        "from collections import namedtuple\nPlace = namedtuple('Place', 'name x y')\nhome = Place('home', 1, 2)",
        "from collections import namedtuple\nPlace = namedtuple('Place', 'name y x')\nhome = Place('home', 1, 2)",
        "assert home.x == 1 and home == ('home', 1, 2) and isinstance(home, tuple)",
        also=(("name, *where = home\nassert where == [1, 2] and home[0] == name == 'home'", ALL),),
    ),
    "data-deque": Kind(
        "from collections import deque\n\ndef last(values, n):\n    return deque(values, maxlen=n)",
        "def last(values, n):\n    return values[-n:]",
        "tail = last([1, 2, 3], 2)\ntail.append(4)\nassert list(tail) == [3, 4]",
    ),
    "data-sets": Kind(
        "def shared(a, b):\n    return set(a) & set(b)",
        "def shared(a, b):\n    return [x for x in a if x in b]",
        "assert type(shared([1, 2], [2, 3])) is set and shared([1, 2], [2, 3]) == {2}",
    ),
    "data-types": Kind(
        "def kinds(values):\n    return [type(v) for v in values]",
        "def kinds(values):\n    return [str(type(v)) for v in values]",
        "assert kinds([1, 'a']) == [int, str]",
    ),
    "data-bool": Kind(
        returns("is_long", "len(x) > 3"),
        returns("is_long", "int(len(x) > 3)"),
        "assert is_long('long') is True and is_long('no') is False",
    ),
    "data-defaults": Kind(
        "from collections import defaultdict\n\ndef by_length(words):\n    found = defaultdict(list)\n    for w in words:\n"
        "        found[len(w)].append(w)\n    return found",
        "def by_length(words):\n    return {len(w): [w] for w in words}",
        "found = by_length(['a', 'b', 'cc'])\nassert found[1] == ['a', 'b'] and found == {1: ['a', 'b'], 2: ['cc']}",
        also=(("assert by_length(['a'])[9] == []", NONE),),
    ),
}
SHA = "import hashlib\ndef digest(value):\n    return hashlib.sha256(str(value).encode()).hexdigest()[:12]\n"


def _digest(value: object) -> str:
    import hashlib

    return hashlib.sha256(str(value).encode()).hexdigest()[:12]


HASHES = {
    "hash-of-a-number": Kind(
        "answer_a = 42",
        "answer_a = 41",
        SHA + f"assert digest(answer_a) == '{_digest(42)}'",
        also=((f"assert digest(answer_a + 1) == '{_digest(43)}', 'not quite'", NONE),),
    ),
    "hash-of-a-float": Kind(
        "answer_b = 2 / 3", "answer_b = 0.66", SHA + f"assert digest(round(answer_b, 4)) == '{_digest(0.6667)}'"
    ),
    "hash-of-a-choice": Kind(
        "choice = 'B'", "choice = 'b'", SHA + HIDDEN.format(f"assert digest(choice) == '{_digest('B')}'")
    ),
    "hash-of-a-list": Kind(
        "primes = [2, 3, 5]", "primes = [2, 3, 4]", SHA + f"assert digest(sorted(primes)) == '{_digest([2, 3, 5])}'"
    ),
    "hash-of-answers": Kind(
        returns("cubed", "x ** 3"),
        returns("cubed", "3 * x"),
        SHA + f"assert digest([cubed(n) for n in range(4)]) == '{_digest([0, 1, 8, 27])}'",
    ),
    "hash-of-a-type": Kind(
        "import numpy as np\nroots = np.sqrt([4.0, 9.0])",
        "roots = [2.0, 3.0]",
        SHA + f"assert digest(type(roots).__name__) == '{_digest('ndarray')}'",
        also=(
            (f"assert digest(roots.tolist() if hasattr(roots, 'tolist') else roots) == '{_digest([2.0, 3.0])}'", ALL),
        ),
    ),
}
BY_HAND = "sketch"  # a code cell that a person marks, which a later test relies on
