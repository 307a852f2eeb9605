"""Other right ways, and mistakes with the sentence that their author shall read."""

import pandas as pd

from autograder.catalogue import right, wrong


@wrong("group_means", says="You take a missing value for zero, and that pulls the mean of its group down.")
def missing_as_zero(table, group, value):
    return table.fillna({value: 0}).groupby(group)[value].mean()


@wrong("group_means", says="You add up the values of each group; divide by how many there are.")
def sums(table, group, value):
    return table.groupby(group)[value].sum()


@right("group_means")
def sum_by_count(table, group, value):
    groups = table.dropna(subset=[value]).groupby(group)[value]
    return groups.sum() / groups.size()


@wrong("share_missing", says="You count the missing values; their share is that number divided by the number of rows.")
def number_missing(table):
    return table.isna().sum()


@wrong("share_missing", says="That is the share of the values that are there; the missing ones are the rest.")
def share_present(table):
    return table.notna().mean()


@wrong("share_missing", says="You divide by the number of all cells; the share of a column is of its rows.")
def of_all_cells(table):
    return table.isna().sum() / table.size


@right("share_missing")
def rest_of_the_share_present(table):
    return 1 - table.count() / len(table)


@wrong(
    "with_district",
    says="Rows whose garden is not listed are lost: merge keeps common keys only, if you do not say how.",
)
def rows_lost(counts, gardens):
    return counts.merge(gardens, on="garden")


@wrong(
    "with_district", says="Gardens that nobody counted in become rows: an outer merge keeps the keys of both tables."
)
def rows_added(counts, gardens):
    return counts.merge(gardens, on="garden", how="outer")


@wrong("with_district", says="You put the tables side by side row by row; which rows belong together, the garden says.")
def row_by_row(counts, gardens):
    return pd.concat([counts, gardens[["district"]]], axis=1)


@right("with_district")
def looked_up(counts, gardens):
    return counts.assign(district=counts["garden"].map(gardens.set_index("garden")["district"]))
