"""Floors and baselines of the three tasks, over ten seeds, as the table in README.md has them.

python project/measure.py [FIRST_SEED]
"""

import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent / "source_solutions" / "final-project"))
import tasks


def measured(name, seeds):
    """Lines of the table: (rule, parameters, scores (S,)) for each floor and for the baseline."""
    drawn = [tasks.TASKS[name](seed) for seed in seeds]
    rules = [(rule, 0, np.array([data.floors[rule] for data in drawn])) for rule in drawn[0].floors]
    scores, sizes = zip(*(tasks.baseline(name, data) for data in drawn), strict=True)
    return [*rules, ("baseline", sizes[0], np.array(scores))]


def main(first=0):
    print("| task | rule | parameters | mean | spread | smallest | largest |\n|---|---|---|---|---|---|---|")
    for name in tasks.TASKS:
        for rule, size, scores in measured(name, range(first, first + 10)):
            numbers = scores.mean(), scores.std(ddof=1), scores.min(), scores.max()
            print(f"| `{name}` | {rule} | {size} | " + " | ".join(f"{number:.3f}" for number in numbers) + " |")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 0)
