"""What the hidden tests of ps2's two worksheets share."""

import numpy as np

from autograder.checks import compare, fail


def right_answers(X_q, X_kv, W_Q, W_K, W_V):
    """The entries of a worksheet: X_q (T_q, d) asks, X_kv (T_k, d) answers."""
    Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
    scores = Q @ K.T / np.sqrt(Q.shape[1])
    weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    dominant = weights.argmax(axis=1) + 1
    return {"Q": Q, "K": K, "V": V, "scores": scores, "weights": weights, "output": weights @ V, "dominant": dominant}


def judge_entries(answers, name, right, *entries):
    """Demand these entries of the student's `answers`, a dict which the notebook calls `name`, to two decimals."""
    if not isinstance(answers, dict):
        fail(f"{name} should be a dict of numbers.")
    for entry in entries:
        if entry not in answers:
            fail(f'The entry "{entry}" is missing.')
        compare(answers[entry], right[entry], f'"{entry}"', atol=0.005 + 1e-9)
