"""What students really write: other right ways, and mistakes with the sentence that their author shall read."""

import numpy as np

from autograder.catalogue import right, wrong


@wrong("standard_scores", says="You divide by the variance; take its root, the standard deviation.")
def divided_by_the_variance(values):
    return (values - np.mean(values)) / np.var(values)


@wrong("standard_scores", says="You divide by n - 1 where the task asks for the mean over all n values.")
def of_a_sample(values):
    return (values - np.mean(values)) / np.std(values, ddof=1)


@wrong("median", says="Of an even number of values you take one of the two in the middle, not their mean.")
def upper_of_two(values):
    return np.sort(values)[len(values) // 2]


@wrong("median", says="The middle of the list is the median only when the list is in order.")
def without_order(values):
    n = len(values)
    return (values[(n - 1) // 2] + values[n // 2]) / 2


@right("median")
def of_numpy(values):
    return np.median(values)
