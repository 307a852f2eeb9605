"""Checks the form of a final project: whether everything is there that a reader needs. Needs NumPy only.

It does not judge: a project with a complete form may still be wrong, and one that reaches little may be a good one.
"""

import numpy as np

SEEDS, SENTENCES, WORDS = 4, 2, 6


def what_is_missing(report):
    """One line for each thing that `report`, a dictionary, lacks; an empty list where its form is complete."""
    if not isinstance(report, dict):
        return ["report: there is no dictionary of this name; run the cell that makes it"]
    missing = []
    if not (isinstance(report.get("task"), str) and len(report["task"].split()) >= WORDS):
        missing.append("task: say in a sentence what goes in and what comes out")
    seeds = _list(report.get("seeds"))
    distinct = len({str(seed) for seed in seeds})
    if distinct < SEEDS:
        missing.append(f"seeds: name the seeds of your runs, {SEEDS} different ones or more; there are {distinct}")
    if not _number(report.get("floor")):
        missing.append("floor: give the score of the best simple rule, a number")
    for name in ("baseline", "model"):
        scores = _list(report.get(name))
        if not scores or len(scores) != len(seeds) or not all(_number(score) for score in scores):
            missing.append(f"{name}: give one score, a number, for each of the {len(seeds)} seeds")
        elif name == "model":
            spread = np.std(np.array(scores, dtype=float), ddof=1) if len(scores) > 1 else np.nan
            if not _number(report.get("spread")) or not abs(report["spread"] - spread) <= 0.01 * spread + 1e-6:
                missing.append("spread: give the standard deviation of the model's scores, np.std(scores, ddof=1)")
    parameters = report.get("parameters")
    if not _number(parameters) or parameters != int(parameters) or parameters < 1:
        missing.append("parameters: give the number of parameters of one model, a whole number")
    opened = getattr(report.get("held_back"), "opened", None)
    if opened is None:
        missing.append("held_back: put the HeldBack object of your data here")
    elif opened != 1:
        missing.append(f"held_back: open the held-back data once in a run of all cells; it was opened {opened} times")
    limits = [limit for limit in _list(report.get("limits")) if isinstance(limit, str) and len(limit.split()) >= WORDS]
    if len(limits) < SENTENCES:
        missing.append(f"limits: name {SENTENCES} things or more that you have not shown, a sentence each")
    return missing


def _list(value):
    """The entries of a list, tuple or array; nothing of what is none."""
    return list(value) if isinstance(value, (list, tuple, range)) or np.ndim(value) == 1 else []


def _number(value):
    """Whether this is one finite number."""
    is_number = isinstance(value, (int, float, np.number)) and not isinstance(value, bool)
    return is_number and bool(np.isfinite(value))
