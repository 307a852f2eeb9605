"""What the hidden tests of ps7 share: the grader's own head, and the judgement of an attention pattern."""

import itertools

import numpy as np

from autograder.checks import fail, figure, observe, reference, to_array
from autograder.figures import attention_beside

SIZES = [(3, 4), (3, 12), (1, 4), (4, 7), (2, 2), (5, 3), (2, 20)]
"""Numbers of tokens and `max_len` for which heads that look at a place are judged."""


def letters_of(sequence):
    return ["abcdefghijklmnopqrstuvwxyz"[token] for token in sequence]


def matrices_of(answer, function, size, longest, kinds, heads):
    """A student's matrices: float64 arrays by name, if their form is right. `size` says in words what they are for.

    kinds: different rows of X. longest: rows that a table of positions must have. heads: for the end of the names of
    each head's matrices the columns of its W_V, or None where they are as many as its rows.
    """

    def form(sentence):
        observe(f"form for {size}", sentence)
        fail(sentence)

    if not isinstance(answer, dict):
        form(f"`{function}` should return a dict with the matrices under their names.")
    names = [f"{name}{head}" for head in heads for name in ("W_Q", "W_K", "W_V")]
    found = {}
    for name in [*names, "positions"]:
        if answer.get(name) is None:
            if name in names:
                form(f'The entry "{name}" is missing.')
            continue
        found[name] = to_array(answer[name], f'"{name}"')
        if found[name].dtype.kind == "c" or found[name].ndim != 2:
            form(f'"{name}" should be a matrix of real numbers.')
        found[name] = found[name].astype(np.float64)
        if not np.isfinite(found[name]).all():
            form(f'"{name}" holds a number that is not finite.')
    table = found.get("positions")
    if table is not None and len(table) < longest:
        form(f'With {size} "positions" has {len(table)} rows, which is too few for a sequence of {longest}.')
    rows = kinds + (0 if table is None else table.shape[1])
    for name in names:
        if len(found[name]) != rows:
            form(f'With {size} "{name}" has {len(found[name])} rows; token and position have {rows} columns.')
    for head, width in heads.items():
        W_Q, W_K, W_V = (found[f"{name}{head}"] for name in ("W_Q", "W_K", "W_V"))
        if W_Q.shape[1] != W_K.shape[1] or W_Q.shape[1] == 0:
            form(f'"W_Q{head}" and "W_K{head}" should have equally many columns.')
        if W_V.shape[1] != (width or rows):
            what = "the outputs have" if width else "the stream, to which its output is added, has"
            form(f'With {size} "W_V{head}" has {W_V.shape[1]} columns; {what} width {width or rows}.')
    observe(f"form for {size}", "in order")
    return found


def put_together(answer, function, size, longest, kinds, width=None):
    """The grader's head, in float64, with a student's matrices; arguments as for `matrices_of`.

    width: of the outputs, that of X where none is given. Returns a function of sequences of one length, (N, T): output
    (N, T, d_v), weights (N, T, T).
    """
    found = matrices_of(answer, function, size, longest, kinds, {"": kinds if width is None else width})
    table = found.get("positions")

    def head(sequences):
        X = np.eye(kinds)[np.array(sequences, dtype=int)]
        if table is not None:
            places = np.broadcast_to(table[: X.shape[1]], (*X.shape[:2], table.shape[1]))
            X = np.concatenate([X, places], axis=2)
        Q, K, V = (X @ found[name] for name in ("W_Q", "W_K", "W_V"))
        scores = Q @ K.swapaxes(1, 2) / np.sqrt(Q.shape[2])
        weights = np.exp(scores - scores.max(axis=2, keepdims=True))
        weights = weights / weights.sum(axis=2, keepdims=True)
        return weights @ V, weights

    return head


def circuit_of(answer, size, max_len, n_tokens):
    """The grader's circuit of two heads, in float64, with a student's matrices; arguments as for `matrices_of`.

    Returns a function of sequences of one length, begin first, (N, T): output of head 2 (N, T, n_tokens), its weights
    and those of head 1, (N, T, T).
    """
    kinds = n_tokens + 1
    found = matrices_of(answer, "induction_circuit", size, max_len + 1, kinds, {"1": None, "2": n_tokens})
    found.setdefault("positions", np.zeros((max_len + 1, 0)))

    def circuit(sequences):
        output, first, second = reference.run_circuit(found, np.eye(kinds)[np.array(sequences, dtype=int)])
        return output, second, first

    return circuit


def coarse(share):
    return "right" if share >= 0.99 - 1e-9 else "soft" if share > 0.5 else "elsewhere"


class Pattern:
    """The judgement of one task: `task` is what `wanted_keys` calls it, `where` says it to the student.

    The first sequence that fails is drawn, once for each object. What is observed is coarse, so that matrices of any
    kind can share it: a key is one of those that get most where its weight is this part, `most`, of the largest one.
    """

    def __init__(self, task, where, most=0.5):
        self.task, self.where, self.most = task, where, most
        self.drawn = False

    def wanted(self, sequence):
        return reference.wanted_keys(self.task, sequence)

    def letters(self, sequence):
        return letters_of(sequence)

    def attention(self, head, size, sequences, probe):
        """Demand 0.99 of the attention on the right keys, for sequences in the order of their lengths."""
        failing, least = None, 1.0
        for _, group in itertools.groupby(sequences, key=len):
            group = list(group)
            weights = head(group)[1]
            on_right = (weights * np.stack([self.wanted(sequence) for sequence in group])).sum(axis=2)
            least = np.minimum(least, on_right.min())
            if failing is None and coarse(on_right.min()) != "right":
                n = int((on_right < 0.99 - 1e-9).any(axis=1).argmax())
                failing = group[n], weights[n], int(on_right[n].argmin()), on_right[n].min()
        seen = head([probe])[1][0]
        most = (seen >= self.most * seen.max(axis=1, keepdims=True)).tolist()
        observe(f"keys that get most and the least right share, {size}", [*most, coarse(least)])
        if failing is None:
            return
        sequence, weights, query, share = failing
        letters = self.letters(sequence)
        self.draw(
            weights,
            self.wanted(sequence),
            letters,
            f"beside the wanted one, in which every token looks at {self.where}. Yours puts {share:.3f} of the "
            f"attention of query {query + 1} there.",
        )
        fail(
            f"With {size} and the sequence {' '.join(letters)}, query {query + 1} ({letters[query]}) puts {share:.3f} "
            f"of its attention on {self.where}; at least 0.99 is asked for."
        )

    def outputs(self, size, off, shown, row):
        """Demand outputs that are off by at most 0.05. off: pairs (difference, sequence). row: what they should be."""
        observe(f"outputs, {size}", np.sign(np.round(off[shown][0], 1)).tolist())
        worst, sequence = max(
            ((np.nan_to_num(np.abs(d), nan=np.inf).max(), s) for d, s in off), key=lambda pair: pair[0]
        )
        if worst > 0.05 + 1e-9:
            fail(
                f"With {size} and the sequence {' '.join(self.letters(sequence))}, an output is off by {worst:.3g}; "
                f"0.05 is allowed. Each output should be {row}."
            )

    def draw(self, weights, wanted, letters, says):
        """Draw an attention pattern beside the wanted one; `says` ends the sentence that describes the picture."""
        if not self.drawn:
            self.drawn = True
            text = " ".join(letter for letter in letters if letter != "begin")
            title = f"first failing sequence: {text}"
            begin = " after the begin token," if "begin" in letters else ""
            figure(
                lambda: attention_beside(weights, wanted, letters, title),
                f"Your attention pattern for the sequence {text}{begin} {says}",
            )


class Induction(Pattern):
    """The judgement of head 2 of the circuit, in sequences that open with begin."""

    def __init__(self):
        super().__init__("induction", "what came after its own kind, or begin")

    def wanted(self, sequence):
        return reference.keys_after_my_kind(sequence[1:])

    def letters(self, sequence):
        return ["begin", *letters_of(sequence[1:])]
