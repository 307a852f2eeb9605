# %% [markdown] nbgrader={"grade_id": "introduction"}
"""
# Birds in gardens

For three weeks somebody counted the birds in four gardens. `counts.csv`, which lies beside this notebook, has a row for
each garden and week; in some weeks nobody came. You compare the gardens, see how much is missing, and put a second
table beside the first. 20 points, all graded automatically. You need pandas. Plan one hour.
"""

# %% nbgrader={"grade_id": "tables"}
import numpy as np
import pandas as pd

counts = pd.read_csv("counts.csv")
gardens = pd.DataFrame({"garden": ["church", "park", "school", "station"], "district": ["old", "old", "new", "new"]})

# %%
student_id = "..."  # as on the class list

# %% [markdown] nbgrader={"grade_id": "group-means-task"}
"""
## Exercise 1: means of groups (6 points)

Give the mean of a column for each group of rows, as a Series whose index holds the groups. A missing value counts
neither as zero nor at all: the mean is that of the values that are there.
"""


# %% nbgrader={"grade_id": "group-means", "solution": true}
def group_means(table, group, value):
    """The mean of column `value` for each value of column `group`, a Series."""
    ### BEGIN SOLUTION
    return table.groupby(group)[value].mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "group-means-tests", "points": 6}
means = group_means(counts, "garden", "birds")
assert isinstance(means, pd.Series), "The result is a Series, with the groups as its index."
assert means["school"] == 5, "In the school's garden there were 4, 6 and 5 birds: 5 on average."
### BEGIN HIDDEN TESTS
assert means.to_dict() == {"school": 5, "mill": 10, "church": 3, "station": 8}, (
    "The means of the gardens are not right."
)
heights = pd.DataFrame({"tree": ["fir", "ash", "fir", "ash", "oak"], "metres": [8.0, 4.0, 12.5, np.nan, 7.5]})
found = group_means(heights, "tree", "metres")
assert found.to_dict() == {"fir": 10.25, "ash": 4, "oak": 7.5}, "Means in another table are not right."
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "missing-task"}
"""
## Exercise 2: how much is missing (6 points)

Give for each column the share of its rows in which the value is missing, a number from 0 to 1, as a Series whose index
holds the names of the columns.
"""


# %% nbgrader={"grade_id": "missing", "solution": true}
def share_missing(table):
    """For each column the share of missing values, a Series."""
    ### BEGIN SOLUTION
    return table.isna().mean()
    ### END SOLUTION


# %% nbgrader={"grade_id": "missing-tests", "points": 6}
shares = share_missing(counts)
assert isinstance(shares, pd.Series), "The result is a Series, with the names of the columns as its index."
assert shares["week"] == 0, "No week is missing."
### BEGIN HIDDEN TESTS
assert abs(shares["birds"] - 1 / 6) < 1e-9 and len(shares) == 3, "The shares in counts.csv are not right."
trees = pd.DataFrame(
    {"tree": ["fir", None, "oak", "ash"], "metres": [np.nan, np.nan, 7.5, np.nan], "age": [0, 1, 2, 3]}
)
assert share_missing(trees).to_dict() == {"tree": 0.25, "metres": 0.75, "age": 0}, (
    "Shares in another table are not right."
)
### END HIDDEN TESTS

# %% [markdown] nbgrader={"grade_id": "district-task"}
"""
## Exercise 3: two tables side by side (8 points)

`gardens` says in which district a garden lies, but not of all gardens. Give the counts with their districts: every row
of `counts`, in the same order, and none besides. Where a garden is not listed, the district is missing.
"""


# %% nbgrader={"grade_id": "district", "solution": true}
def with_district(counts, gardens):
    """The rows of `counts` with the columns of `gardens` beside them, by their common column `garden`."""
    ### BEGIN SOLUTION
    return counts.merge(gardens, on="garden", how="left")
    ### END SOLUTION


# %% nbgrader={"grade_id": "district-tests", "points": 8}
both = with_district(counts, gardens)
assert set(both.columns) == {"garden", "week", "birds", "district"}, "A column is missing, or there is one too many."
assert both["district"].iloc[0] == "new", "The first row is of the school's garden, in the new district."
### BEGIN HIDDEN TESTS
assert both["garden"].tolist() == counts["garden"].tolist(), "These are not the rows of counts.csv in their order."
assert both["district"].fillna("?").tolist() == ["new", "?", "old", "new"] * 3, "Districts are not right."
few = pd.DataFrame({"garden": ["z", "x", "z", "y"], "birds": [1, 2, 3, 4]})
listed = pd.DataFrame({"garden": ["y", "w", "z"], "district": ["east", "west", "north"]})
joined = with_district(few, listed)
assert joined["birds"].tolist() == [1, 2, 3, 4], "These are not the rows of another table in their order."
assert joined["district"].fillna("?").tolist() == ["north", "?", "north", "east"], "Other districts are not right."
### END HIDDEN TESTS
