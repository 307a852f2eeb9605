# %% [markdown] nbgrader={"grade_id": "introduction"}
"""
# Describing data

You describe a list of numbers by few: on which scale a value is large, and where the middle is. 20 points: 16 are
graded automatically, and 4, for the written answer, by a person. Plan one hour.
"""

# %% nbgrader={"grade_id": "imports"}
import numpy as np

# %% [markdown] nbgrader={"grade_id": "standard-scores-task"}
"""
## Exercise 1: standard scores (8 points)

The standard score of a value says how many standard deviations it lies above the mean. Take the standard deviation of
the values themselves, the root of the mean squared distance from the mean. Not all values are equal.
"""


# %% nbgrader={"grade_id": "standard-scores", "solution": true}
def standard_scores(values):
    """The standard scores (n,) of values (n,)."""
    ### BEGIN SOLUTION
    return (values - np.mean(values)) / np.std(values)
    ### END SOLUTION


# %% nbgrader={"grade_id": "standard-scores-tests", "points": 8}
scores = standard_scores(np.array([1.0, 3.0]))
assert np.shape(scores) == (2,), f"Two values have two scores, not {np.shape(scores)}."
assert np.allclose(scores, [-1, 1]), "1 and 3 lie one standard deviation below and above their mean."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("any number of values", points=4)
def _(rng):
    for n in (2, 3, 7, 40):
        agrees(standard_scores, rng.normal(size=n))


@check("values on other scales", points=3)
def _(rng):
    values = rng.normal(size=9)
    agrees(standard_scores, 1000 * values)
    agrees(standard_scores, values - 50)


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "median-task"}
"""
## Exercise 2: the median (8 points)

Half of the values lie below the median and half above it. Of an even number of values it is the mean of the two in the
middle. The values come in any order, and your function leaves them as they are.
"""


# %% nbgrader={"grade_id": "median", "solution": true}
def median(values):
    """The median, a number, of values (n,)."""
    ### BEGIN SOLUTION
    ordered = np.sort(values)
    n = len(ordered)
    return (ordered[(n - 1) // 2] + ordered[n // 2]) / 2
    ### END SOLUTION


# %% nbgrader={"grade_id": "median-tests", "points": 8}
assert median(np.array([3.0, 1.0, 2.0])) == 2, "Of 1, 2 and 3 the median is 2."
### BEGIN HIDDEN TESTS
from autograder.checks import agrees, check


@check("an odd number of values", points=3)
def _(rng):
    for n in (1, 5, 9):
        agrees(median, rng.normal(size=n))


@check("an even number of values", points=4)
def _(rng):
    for n in (2, 4, 10):
        agrees(median, rng.normal(size=n))


### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "outlier-task"}
"""
## Exercise 3: one slip of the pen (4 points)

Somebody types one value with a zero too many. In two to four sentences: what happens to the mean and what to the median
of a hundred values, and why?
"""

# %% [markdown] nbgrader={"grade_id": "outlier", "solution": true, "points": 4}
"""
**Model answer.** The mean moves, as far as the value moved divided by a hundred, for it adds up all values. The median moves
at most to the next value in order, because only the order counts.

**Rubric** (4 points)

- **2 points**: the mean moves, in proportion to the error.
- **2 points**: the median hardly moves, because it depends on the order only.
"""
