"""What the hidden tests of ps5's functions of three results share."""

import numpy as np

from autograder.checks import changes_its_input, compare, fail


def judge_three(name, mine, right, results, parts, *args, **named):
    """Compare these parts of what the student's function gives with the reference's.

    results: names of the three. parts: places of those that count.
    """
    expected = right(*args, **named)
    copies = [a.copy(order="A") if isinstance(a, np.ndarray) else a for a in args]
    found = mine(*copies, **named)
    if not isinstance(found, (tuple, list)) or len(found) != 3:
        fail(f"{name} should return three values: {', '.join(results)}.")
    for part in parts:
        compare(found[part], expected[part], f"`{results[part]}`", atol=1e-4 if args[0].dtype == np.float32 else 1e-6)
    if getattr(mine, "_changed", None) or any(not np.array_equal(a, b) for a, b in zip(copies, args, strict=True)):
        changes_its_input(name)
