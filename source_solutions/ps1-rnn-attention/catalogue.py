# ruff: noqa: B905
"""Right variants and misconceptions of ps1-rnn-attention.

Each misconception carries the sentence that its author reads in the feedback.
"""

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import additive_scores, attend, planted_alignment

# ------------------------------------------------------------------------------ exercise 1: additive_scores

edited(
    "additive_scores",
    "no_tanh",
    "np.tanh(W_s @ s + H @ W_h.T)",
    "W_s @ s + H @ W_h.T",
    says="Your scores leave out the tanh; without it the state adds the same number to every score.",
)
edited(
    "additive_scores",
    "tanh_of_each_part",
    "np.tanh(W_s @ s + H @ W_h.T)",
    "np.tanh(W_s @ s) + np.tanh(H @ W_h.T)",
    says="You take the tanh of both parts and add up then; add first, so that state and annotation meet inside "
    "the tanh.",
)


@wrong("additive_scores", says="Your tanh comes last, after v. It belongs before: v weighs the entries of the tanh.")
def tanh_of_the_score(s, H, W_s, W_h, v):
    return np.tanh((W_s @ s + H @ W_h.T) @ v)


edited(
    "additive_scores",
    "multiplied_instead_of_added",
    "W_s @ s + H @ W_h.T",
    "(W_s @ s) * (H @ W_h.T)",
    says="You multiply what state and annotation bring, entry by entry; the additive score adds them.",
)
edited(
    "additive_scores",
    "sigmoid_instead_of_tanh",
    "np.tanh(W_s @ s + H @ W_h.T)",
    "1 / (1 + np.exp(-(W_s @ s + H @ W_h.T)))",
    says="You use the sigmoid, which runs from 0 to 1; the additive score uses tanh, from -1 to 1.",
)
edited(
    "additive_scores",
    "relu_instead_of_tanh",
    "np.tanh(W_s @ s + H @ W_h.T)",
    "np.maximum(W_s @ s + H @ W_h.T, 0)",
    says="You cut off what is negative (a ReLU); the additive score uses tanh.",
)
edited(
    "additive_scores",
    "state_left_out",
    "W_s @ s + H @ W_h.T",
    "H @ W_h.T",
    says="Your scores do not depend on the state, so the decoder would look at the same place at every step.",
)
edited(
    "additive_scores",
    "annotations_left_out",
    "W_s @ s + H @ W_h.T",
    "W_s @ s + 0 * (H @ W_h.T)",
    says="Your scores do not depend on the annotations: all of them are equal.",
)
edited(
    "additive_scores",
    "annotations_subtracted",
    "W_s @ s + H @ W_h.T",
    "W_s @ s - H @ W_h.T",
    says="You subtract what the annotation brings from what the state brings; the two are added.",
)
edited(
    "additive_scores",
    "v_left_out",
    "return hidden @ v",
    "return hidden.sum(axis=1)",
    says="You add up the entries of the tanh as they are; v weighs them, so take the dot product with v.",
)
edited(
    "additive_scores",
    "entries_not_added_up",
    "return hidden @ v",
    "return hidden * v",
    says="You multiply with v entry by entry and stop there: a table (T_x, a). A dot product also adds up.",
)
edited(
    "additive_scores",
    "scores_in_a_column",
    "return hidden @ v",
    "return (hidden @ v)[:, None]",
    says="Your numbers are right but stand in a column (T_x, 1); the scores are asked for as (T_x,).",
)
edited(
    "additive_scores",
    "divided_by_root_of_a",
    "return hidden @ v",
    "return hidden @ v / np.sqrt(len(v))",
    says="You divide the scores by the root of their width, as dot products need it. Additive scores have no scale.",
)


@wrong("additive_scores", says="You return weights, after a softmax; here the scores themselves are asked for.")
def softmax_already(s, H, W_s, W_h, v):
    hidden = np.tanh(W_s @ s + H @ W_h.T)  # (T_x, a)
    powers = np.exp(hidden @ v - (hidden @ v).max())
    return powers / powers.sum()


edited(
    "additive_scores",
    "rows_and_columns_of_W_h",
    "H @ W_h.T",
    "(H @ (W_h.T if W_h.shape[0] != W_h.shape[1] else W_h))",
    says="Where W_h happens to be square you multiply by it from the wrong side: h W_h is not W_h h. Transpose always.",
)


@wrong(
    "additive_scores",
    says="You compare the two parts by their dot product; the additive score adds them, takes the tanh, and "
    "weighs with v.",
)
def product_of_the_parts(s, H, W_s, W_h, v):
    return (H @ W_h.T) @ (W_s @ s)


@wrong(
    "additive_scores", says="Every annotation gets the score of the last one: something is overwritten in your loop."
)
def loop_keeps_the_last(s, H, W_s, W_h, v):
    scores = np.zeros(len(H))
    for j in range(len(H)):
        scores[:] = v @ np.tanh(W_s @ s + W_h @ H[j])
    return scores


@wrong("additive_scores", says="Your loop stops before the last annotation, whose score stays 0.")
def loop_stops_early(s, H, W_s, W_h, v):
    scores = np.zeros(len(H))
    for j in range(len(H) - 1):
        scores[j] = v @ np.tanh(W_s @ s + W_h @ H[j])
    return scores


@wrong(
    "additive_scores", says="You return a single number, the sum of all scores; each annotation has a score of its own."
)
def all_scores_added_up(s, H, W_s, W_h, v):
    return np.sum(np.tanh(W_s @ s + H @ W_h.T) @ v)


@wrong(
    "additive_scores",
    says="You multiply the state by W_s from the wrong side: s W_s is not W_s s. Where W_s is square this gives "
    "other numbers, elsewhere an error.",
)
def state_times_W_s_from_the_left(s, H, W_s, W_h, v):
    projected = s @ W_s
    return np.array([v @ np.tanh(projected + W_h @ h) for h in H])


@wrong(
    "additive_scores",
    says="np.squeeze removes every axis of size 1, also that of the annotations where there is only one; say which"
    " axis.",
)
def scores_squeezed(s, H, W_s, W_h, v):
    hidden = np.tanh(W_s @ s + H @ W_h.T)
    return np.squeeze(hidden @ v[:, None])


@wrong(
    "additive_scores",
    says="You reshape H where it should be transposed. Reshaping keeps the order of the numbers and mixes the "
    "annotations up.",
)
def H_reshaped_for_transpose(s, H, W_s, W_h, v):
    T_x, m = H.shape
    columns = W_h @ H.reshape(m, T_x)
    return v @ np.tanh((W_s @ s)[:, None] + columns)


@wrong(
    "additive_scores",
    says="You take the tanh of each part and multiply the two; the additive score adds them, takes one tanh of the"
    " sum, and weighs with v.",
)
def product_of_the_squashed_parts(s, H, W_s, W_h, v):
    query = np.tanh(W_s @ s)
    keys = np.tanh(H @ W_h.T)
    return keys * query @ v


@wrong(
    "additive_scores",
    says="Two things: your tanh comes last, after v, where it belongs before; and you return weights, after a "
    "softmax, where the scores themselves are asked for.",
)
def softmax_of_the_tanh_of_the_score(s, H, W_s, W_h, v):
    scores = np.tanh((W_s @ s + H @ W_h.T) @ v)
    e = np.exp(scores - scores.max())
    return e / e.sum()


@right("additive_scores")
def scores_by_a_loop(s, H, W_s, W_h, v):
    scores = []
    for h in H:
        scores.append(float(np.dot(v, np.tanh(np.dot(W_s, s) + np.dot(W_h, h)))))
    return scores


@right("additive_scores")
def scores_by_einsum(s, H, W_s, W_h, v):
    hidden = np.tanh(np.einsum("an,n->a", W_s, s)[None] + np.einsum("am,jm->ja", W_h, H))
    return np.einsum("a,ja->j", v, hidden)


@right("additive_scores")
def scores_of_joined_vectors(s, H, W_s, W_h, v):
    both = np.concatenate([np.broadcast_to(s, (len(H), len(s))), H], axis=1)  # (T_x, n + m)
    return np.tanh(both @ np.hstack([W_s, W_h]).T).dot(v)


@right("additive_scores")
def scores_by_pytorch(s, H, W_s, W_h, v):
    s, H, W_s, W_h, v = (torch.tensor(np.array(array)) for array in (s, H, W_s, W_h, v))
    return torch.tanh(W_h @ H.T + (W_s @ s)[:, None]).T @ v


# --------------------------------------------------------------------------------------- exercise 2: attend


@wrong("attend", says="Large scores overflow in your exp; subtract the largest score first, which changes no weight.")
def largest_score_not_subtracted(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores)
        alpha = powers / powers.sum()
    return alpha, alpha @ H


@wrong(
    "attend",
    says="You subtract the bound of the scores instead of the largest one; when all scores lie far below it, all "
    "exponentials become 0.",
)
def a_fixed_number_subtracted(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores - np.abs(v).sum())
        alpha = powers / powers.sum()
    return alpha, alpha @ H


@wrong(
    "attend",
    says="You subtract the largest absolute value; with scores that are all very negative every exponential is 0.",
)
def largest_size_subtracted(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores - np.abs(scores).max())
        alpha = powers / powers.sum()
    return alpha, alpha @ H


@wrong(
    "attend",
    says="You subtract the first score; where another is much larger, exp still overflows. Subtract the largest.",
)
def first_score_subtracted(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores - scores[0])
        alpha = powers / powers.sum()
    return alpha, alpha @ H


edited(
    "attend",
    "no_exponential",
    "powers = np.exp(scores - scores.max())",
    "powers = np.array(scores)",
    says="You divide each score by the sum of the scores; softmax takes the exponential first.",
)
edited(
    "attend",
    "powers_not_normalised",
    "alpha = powers / powers.sum()",
    "alpha = powers",
    says="Your weights do not sum to 1: divide the exponentials by their sum.",
)
edited(
    "attend",
    "powers_divided_by_their_mean",
    "powers / powers.sum()",
    "powers / powers.mean()",
    says="Your weights sum to the number of annotations: you divide by the mean of the exponentials, not by their sum.",
)
edited(
    "attend",
    "powers_divided_by_their_length",
    "powers / powers.sum()",
    "powers / np.linalg.norm(powers)",
    says="You divide the exponentials by the length of their vector; weights are to sum to 1, so divide by the sum.",
)


@wrong(
    "attend", says="You apply the softmax to weights that have been through it already, which makes them almost equal."
)
def softmax_twice(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    powers = np.exp(scores - scores.max())
    alpha = powers / powers.sum()
    alpha = np.exp(alpha) / np.exp(alpha).sum()
    return alpha, alpha @ H


edited(
    "attend",
    "scaled_scores",
    "additive_scores(s, H, W_s, W_h, v))",
    "additive_scores(s, H, W_s, W_h, v)) / np.sqrt(len(v))",
    says="You divide the scores by the root of their width, as dot products need it. Additive scores have no scale.",
)
edited(
    "attend",
    "base_two",
    "np.exp(scores",
    "np.exp2(scores",
    says="Your powers are powers of 2; softmax uses the exponential function, exp.",
)


@wrong(
    "attend", says="You send each score through a sigmoid by itself; with a softmax the annotations share one whole."
)
def sigmoid_weights(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    alpha = 1 / (1 + np.exp(-np.asarray(scores)))
    return alpha, alpha @ H


edited(
    "attend",
    "returned_in_the_other_order",
    "return alpha, alpha @ H",
    "return alpha @ H, alpha",
    says="You return the context first; alpha comes first, then the context.",
)
edited(
    "attend",
    "alpha_only",
    "return alpha, alpha @ H",
    "return alpha",
    says="You return the weights alone; the context is asked for, too, as the second of two values.",
)
edited(
    "attend",
    "scores_instead_of_alpha",
    "return alpha, alpha @ H",
    "return scores, alpha @ H",
    says="Your context is right, but the first value holds the scores from before the softmax.",
)
edited(
    "attend",
    "context_weighed_by_scores",
    "return alpha, alpha @ H",
    "return alpha, scores @ H",
    says="Your context weighs the annotations with the scores; it is the weights that belong there.",
)
edited(
    "attend",
    "context_is_the_best_annotation",
    "return alpha, alpha @ H",
    "return alpha, H[alpha.argmax()].copy()",
    says="Your context is the annotation with the largest weight alone; it should be the weighted average of all.",
)
edited(
    "attend",
    "context_is_the_mean",
    "return alpha, alpha @ H",
    "return alpha, H.mean(axis=0)",
    says="Your context is the plain mean of the annotations; the weights do not enter.",
)
edited(
    "attend",
    "context_divided_by_count",
    "return alpha, alpha @ H",
    "return alpha, (alpha[:, None] * H).mean(axis=0)",
    says="You divide the weighted sum by the number of annotations once more; the weights sum to 1 already.",
)
edited(
    "attend",
    "context_not_added_up",
    "return alpha, alpha @ H",
    "return alpha, alpha[:, None] * H",
    says="You weigh the annotations but do not add them up: the context is one vector (m,).",
)
edited(
    "attend",
    "context_of_translated_annotations",
    "return alpha, alpha @ H",
    "return alpha, alpha @ (H @ W_h.T)",
    says="Your context averages W_h h; W_h is for the scores only, and what is averaged are the annotations.",
)
edited(
    "attend",
    "context_of_squares",
    "return alpha, alpha @ H",
    "return alpha, alpha**2 @ H",
    says="The weights enter your context twice.",
)
edited(
    "attend",
    "alpha_in_a_column",
    "return alpha, alpha @ H",
    "return alpha[:, None], alpha @ H",
    says="Your weights stand in a column (T_x, 1); alpha is asked for as (T_x,).",
)


@wrong("attend", says="You write into H while you weigh the annotations; the caller's array changes. Work on a copy.")
def annotations_weighed_in_place(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    powers = np.exp(scores - scores.max())
    alpha = powers / powers.sum()
    H *= alpha[:, None].astype(H.dtype)
    return alpha, H.sum(axis=0)


@wrong(
    "attend",
    says="You set small weights to 0. However small, they belong to the whole: without them the rest does not sum "
    "to 1.",
)
def small_weights_dropped(s, H, W_s, W_h, v):
    scores = additive_scores(s, H, W_s, W_h, v)
    e = np.exp(scores - np.max(scores))
    alpha = e / e.sum()
    alpha[alpha < 0.01] = 0
    return (alpha, alpha @ H)


@wrong("attend", says="You round the weights, so that they are only nearly right and do not quite sum to 1.")
def weights_rounded(s, H, W_s, W_h, v):
    scores = np.asarray(additive_scores(s, H, W_s, W_h, v))
    e = np.exp(scores - scores.max())
    alpha = np.round(e / e.sum(), 4)
    context = alpha @ H
    return (alpha, context)


@wrong(
    "attend",
    says="You cut large scores off before exp, so that scores beyond the limit become equal. Subtract the largest "
    "one: that changes no weight.",
)
def scores_cut_off(s, H, W_s, W_h, v):
    scores = additive_scores(s, H, W_s, W_h, v)
    scores = np.clip(scores, -30, 30)
    e = np.exp(scores)
    alpha = e / e.sum()
    return (alpha, alpha @ H)


@wrong(
    "attend",
    says="Two things: you set small weights to 0, so that the rest does not sum to 1; and you write zeros into H, "
    "which belongs to the caller.",
)
def small_weights_dropped_and_H_zeroed(s, H, W_s, W_h, v):
    scores = additive_scores(s, H, W_s, W_h, v)
    e = np.exp(scores - scores.max())
    alpha = e / e.sum()
    unread = alpha < 0.02
    alpha[unread] = 0
    H[unread] = 0
    return (alpha, alpha @ H)


for decimals in (2, 3):
    edited(
        "attend",
        f"weights_rounded_to_{decimals}",
        "alpha = powers / powers.sum()",
        f"alpha = np.round(powers / powers.sum(), {decimals})",
        says="You round the weights, so that they are only nearly right and do not quite sum to 1.",
    )
for share in (0.001, 0.1):
    edited(
        "attend",
        f"weights_below_{str(share).replace('.', '_')}_dropped",
        "alpha = powers / powers.sum()",
        f"alpha = powers / powers.sum() * (powers / powers.sum() >= {share})",
        says="You set small weights to 0. However small, they belong to the whole: without them the rest does not sum "
        "to 1.",
    )
edited(
    "attend",
    "alpha_squeezed",
    "return alpha, alpha @ H",
    "return np.squeeze(alpha), np.squeeze(alpha @ H)",
    says="np.squeeze removes every axis of size 1, also that of a single annotation or a width of 1.",
)


@right("attend")
def attend_with_own_scores(s, H, W_s, W_h, v):
    scores = np.tanh(H @ W_h.T + s @ W_s.T) @ v
    powers = np.exp(scores - np.max(scores))
    alpha = powers / np.sum(powers)
    return alpha, H.T @ alpha


@right("attend")
def attend_by_loops(s, H, W_s, W_h, v):
    scores = additive_scores(s, H, W_s, W_h, v)
    largest = max(scores)
    powers = [np.exp(score - largest) for score in scores]
    alpha = [power / sum(powers) for power in powers]
    context = np.zeros(H.shape[1])
    for weight, h in zip(alpha, H):
        context = context + weight * h
    return alpha, context


@right("attend")
def attend_by_the_logarithm(s, H, W_s, W_h, v):
    scores = torch.as_tensor(np.array(additive_scores(s, H, W_s, W_h, v), dtype=np.float64))
    alpha = torch.exp(scores - torch.logsumexp(scores, dim=0)).numpy()
    return [alpha, (alpha[:, np.newaxis] * H).sum(0)]


# ----------------------------------------------------------------------------- exercise 3: alignment_matrix

edited(
    "alignment_matrix",
    "alignment_transposed",
    "return np.array(rows)",
    "return np.array(rows).T",
    says="Your alignment has a column for each state; a row belongs to a state, the query.",
)
edited(
    "alignment_matrix",
    "contexts_instead_of_weights",
    "v)[0] for s in S",
    "v)[1] for s in S",
    says="You stack the contexts, of shape (T_y, m); the alignment holds the weights.",
)
edited(
    "alignment_matrix",
    "scores_instead_of_weights",
    "attend(s, H, W_s, W_h, v)[0] for s in S",
    "additive_scores(s, H, W_s, W_h, v) for s in S",
    says="Your alignment holds the scores; the softmax of each row is missing.",
)
edited(
    "alignment_matrix",
    "first_state_for_all",
    "attend(s, H, W_s, W_h, v)[0] for s in S",
    "attend(S[0], H, W_s, W_h, v)[0] for s in S",
    says="All rows are those of the first state; row i belongs to state i.",
)
edited(
    "alignment_matrix",
    "last_state_for_all",
    "attend(s, H, W_s, W_h, v)[0] for s in S",
    "attend(S[-1], H, W_s, W_h, v)[0] for s in S",
    says="All rows are those of the last state: something is overwritten in your loop.",
)
edited(
    "alignment_matrix",
    "rows_in_reverse",
    "return np.array(rows)",
    "return np.array(rows)[::-1]",
    says="Your rows stand in reverse order: the first row belongs to the first state.",
)
edited(
    "alignment_matrix",
    "rows_side_by_side",
    "return np.array(rows)",
    "return np.concatenate(rows)",
    says="Your rows stand one after the other in a single long vector; put them below one another.",
)
edited(
    "alignment_matrix",
    "hard_alignment",
    "return np.array(rows)",
    "return np.eye(len(H))[np.argmax(rows, axis=1)]",
    says="Your rows have a single 1, at the largest weight; the weights themselves are asked for.",
)
edited(
    "alignment_matrix",
    "weights_of_mean_state_subtracted",
    "for s in S]",
    "for s in S - S.mean(axis=0)]",
    says="You subtract the mean state first; each state asks as it is.",
)
edited(
    "alignment_matrix",
    "states_added_up",
    "for s in S]",
    "for s in np.cumsum(S, axis=0)]",
    says="Your states pile up from row to row; each row belongs to one state alone.",
)


@wrong(
    "alignment_matrix",
    says="Your softmax runs down the columns, over the states. Each state, a row, shares its attention among "
    "annotations.",
)
def softmax_over_states(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    powers = np.exp(scores - scores.max(axis=0))
    return powers / powers.sum(axis=0)


@wrong(
    "alignment_matrix",
    says="All entries of your alignment together sum to 1; every state, that is every row, needs a softmax of its own.",
)
def softmax_over_everything(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    powers = np.exp(scores - scores.max())
    return powers / powers.sum()


@wrong(
    "alignment_matrix",
    says="You subtract the largest score of the whole table; where those of one row lie far below it, all its "
    "exponentials become 0. Subtract the largest of each row.",
)
def largest_of_the_table_subtracted(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    with np.errstate(invalid="ignore"):
        powers = np.exp(scores - scores.max())
        return powers / powers.sum(axis=1, keepdims=True)


@wrong("alignment_matrix", says="Large scores overflow in your exp; subtract the largest score of each row first.")
def nothing_subtracted(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    with np.errstate(over="ignore", invalid="ignore"):
        powers = np.exp(scores)
        return powers / powers.sum(axis=1, keepdims=True)


@wrong("alignment_matrix", says="The tanh is missing from your scores; see exercise 1.")
def alignment_without_tanh(S, H, W_s, W_h, v):
    scores = ((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


@wrong(
    "alignment_matrix",
    says="In your alignment the annotations ask and the states answer: a row belongs to an annotation.",
)
def annotations_ask(S, H, W_s, W_h, v):
    return np.array([attend(h, S, W_h, W_s, v)[0] for h in H])


@wrong(
    "alignment_matrix",
    says="Row i of your alignment belongs to the state before (the first to itself); here row i belongs to state i.",
)
def state_before_asks(S, H, W_s, W_h, v):
    rows = []
    for i in range(len(S)):
        previous = S[max(i - 1, 0)]
        alpha, _ = attend(previous, H, W_s, W_h, v)
        rows.append(alpha)
    return np.array(rows)


@wrong(
    "alignment_matrix",
    says="np.squeeze removes every axis of size 1, also where there is a single state or a single annotation; the "
    "alignment always has two axes.",
)
def alignment_squeezed(S, H, W_s, W_h, v):
    rows = [attend(s, H, W_s, W_h, v)[0] for s in S]
    return np.squeeze(np.array(rows))


@wrong(
    "alignment_matrix",
    says="Your later states share out only what earlier ones left over; each state shares out a whole of its own, "
    "whatever the others read.",
)
def read_only_once(S, H, W_s, W_h, v):
    left = np.ones(len(H))
    rows = []
    for s in S:
        alpha = np.asarray(attend(s, H, W_s, W_h, v)[0]) * left
        alpha = alpha / alpha.sum()
        left = left * (1 - alpha)
        rows.append(alpha)
    return np.array(rows)


@right("alignment_matrix")
def alignment_at_once(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None, :] + (H @ W_h.T)[None, :, :]) @ v  # (T_y, T_x)
    powers = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return powers / powers.sum(axis=-1, keepdims=True)


@right("alignment_matrix")
def alignment_of_own_softmax(S, H, W_s, W_h, v):
    alignment = np.empty((S.shape[0], H.shape[0]), dtype=S.dtype)
    for i in range(S.shape[0]):
        scores = np.array(additive_scores(S[i], H, W_s, W_h, v))
        scores -= scores.max()
        np.exp(scores, out=scores)
        alignment[i] = scores / scores.sum()
    return alignment


@right("alignment_matrix")
def alignment_as_lists(S, H, W_s, W_h, v):
    alignment = []
    for s in S:
        alpha, _context = attend(s, H, W_s, W_h, v)
        alignment.append(list(alpha))
    return alignment


# ---------------------------------------------------------------------------- exercise 4: alignment_reading


@wrong(
    "alignment_reading",
    says="Your numbers are counted from 0; the picture and the task count from 1, columns and rows alike.",
)
def read_from_zero(student_id):
    weights = planted_alignment(student_id)
    reads = weights.argmax(axis=1)
    times = np.bincount(reads, minlength=6)
    first = int(np.flatnonzero(np.diff(reads) < 0)[0])
    return {
        "reads": reads.tolist(),
        "three_times": int(times.argmax()),
        "left_out": int(times.argmin()),
        "crossing": [first, first + 1],
        "undecided": int(weights.max(axis=1).argmin()),
    }


edited(
    "alignment_reading",
    "crossing_by_columns",
    '"crossing": [first + 1, first + 2],',
    '"crossing": [int(reads[first]) + 1, int(reads[first + 1]) + 1],',
    says="Where a written word reads one before the word of its left neighbour, you took the read words' numbers for "
    '"crossing"; the numbers of the two written words, the rows, are asked for.',
)


edited(
    "alignment_reading",
    "strongest_row_instead_of_column",
    '"three_times": int(times.argmax()) + 1,',
    '"three_times": int(alignment.max(axis=1).argmax()) + 1,',
    says='For "three_times" you named the written word whose row has the largest weight; look for the column '
    "that three rows have their largest weight in.",
)


edited(
    "alignment_reading",
    "most_decided",
    '"undecided": int(alignment.max(axis=1).argmin()) + 1,',
    '"undecided": int(alignment.max(axis=1).argmax()) + 1,',
    says='For "undecided" you named the row with the largest weight of all: this one is the most decided.',
)


edited(
    "alignment_reading",
    "smallest_weight",
    '"reads": (reads + 1).tolist(),',
    '"reads": (alignment.argmin(axis=1) + 1).tolist(),',
    says='Your "reads" takes the smallest weight of each row; a written word reads where its weight is largest.',
)


@wrong(
    "alignment_reading",
    says='For "crossing" you took the numbers of the two read words (the columns); the numbers of the two written '
    "words, the rows, are asked for.",
)
def crossing_by_read_words(student_id):
    reads = planted_alignment(student_id).argmax(axis=1) + 1
    times = np.bincount(reads - 1, minlength=6)
    k = int(np.flatnonzero(np.diff(reads) < 0)[0])
    alignment_reading = {
        "reads": reads.tolist(),
        "three_times": int(times.argmax()) + 1,
        "left_out": int(times.argmin()) + 1,
        "crossing": sorted([int(reads[k]), int(reads[k + 1])]),
        "undecided": int(planted_alignment(student_id).max(axis=1).argmin()) + 1,
    }
    return alignment_reading


@wrong(
    "alignment_reading",
    says='Your "reads" are sorted; they stand in the order of the written words, and this order is what shows a '
    "crossing.",
)
def reads_sorted(student_id):
    reads = np.sort(planted_alignment(student_id).argmax(axis=1)) + 1
    best = planted_alignment(student_id).argmax(axis=1)
    times = np.bincount(best, minlength=6)
    k = int(np.flatnonzero(np.diff(best) < 0)[0]) + 1
    alignment_reading = {
        "reads": [int(r) for r in reads],
        "three_times": int(np.argmax(times)) + 1,
        "left_out": int(np.argmin(times)) + 1,
        "crossing": [k, k + 1],
        "undecided": int(np.argmin(planted_alignment(student_id).max(axis=1))) + 1,
    }
    return alignment_reading


@wrong(
    "alignment_reading",
    says='Your pair for "crossing" begins one place too early: rows are counted from 1, and the two are the word '
    "where the reading goes back and the one before it.",
)
def crossing_one_too_early(student_id):
    reads = planted_alignment(student_id).argmax(axis=1) + 1
    times = [int((reads == j).sum()) for j in range(1, 7)]
    descents = [i for i in range(1, 7) if reads[i] < reads[i - 1]]
    alignment_reading = {
        "reads": list(map(int, reads)),
        "three_times": times.index(3) + 1,
        "left_out": times.index(0) + 1,
        "crossing": [descents[0] - 1 or 7, descents[0]],
        "undecided": int(np.flatnonzero((planted_alignment(student_id) < 0.5).all(axis=1))[0]) + 1,
    }
    return alignment_reading


@wrong(
    "alignment_reading",
    says='For "left_out" you named a word that is read, the one where the least decided written word has its largest '
    "weight; look for the column in which no row has its largest weight.",
)
def left_out_in_the_weakest_row(student_id):
    weights = planted_alignment(student_id)
    reads = weights.argmax(axis=1)
    times = np.bincount(reads, minlength=6)
    first = int(np.flatnonzero(np.diff(reads) < 0)[0])
    weakest = int(weights.max(axis=1).argmin())
    return {
        "reads": (reads + 1).tolist(),
        "three_times": int(times.argmax()) + 1,
        "left_out": int(reads[weakest]) + 1,
        "crossing": [first + 1, first + 2],
        "undecided": weakest + 1,
    }


@right("alignment_reading")
def reading_as_arrays(student_id):
    weights = planted_alignment(student_id)
    reads = 1 + np.argmax(weights, axis=1)
    pairs = [(i + 2, i + 1) for i in range(6) if reads[i] > reads[i + 1]]
    return {
        "reads": reads,
        "three_times": np.array([j for j in range(1, 7) if (reads == j).sum() == 3]),
        "left_out": [j for j in range(1, 7) if j not in reads],
        "crossing": pairs[0],
        "undecided": float(1 + np.flatnonzero((weights < 0.5).all(axis=1))[0]),
        "remark": "by eye, then computed",
    }


survivor(
    "alignment_reading", "minlength=6", "minlength= 7", "a seventh word that nobody reads comes after the right one"
)
survivor("alignment_reading", "[0])", "[-1])", "exactly one pair crosses, so the first is the last")

# --------------------------------------------------------------------------- exercise 5: jaccard_similarity

edited(
    "jaccard_similarity",
    "jaccard_of_characters",
    "set(a.split()), set(b.split())",
    "set(a), set(b)",
    says="You compare the characters of the texts; Jaccard is to compare their words, text.split().",
)
edited(
    "jaccard_similarity",
    "jaccard_split_at_single_spaces",
    "set(a.split()), set(b.split())",
    'set(a.split(" ")), set(b.split(" "))',
    says='You split at spaces only, as split(" ") does, so a line break or a tab does not part two words; '
    "split() without an argument takes all white space.",
)
edited(
    "jaccard_similarity",
    "jaccard_without_capitals",
    "set(a.split()), set(b.split())",
    "set(a.lower().split()), set(b.lower().split())",
    says="You make capitals small; Dog and dog are two words here.",
)
edited(
    "jaccard_similarity",
    "jaccard_without_full_stops",
    "set(a.split()), set(b.split())",
    'set(a.replace(".", " ").split()), set(b.replace(".", " ").split())',
    says="You drop full stops, or all punctuation; here dog. and dog are two words.",
)
edited(
    "jaccard_similarity",
    "jaccard_empty_is_zero",
    "return 1.0",
    "return 0.0",
    says="Two empty texts have similarity 0 in your function; they are equal, so it is 1.",
)


@wrong(
    "jaccard_similarity", says="With two empty texts your function divides 0 by 0; give this case its own answer first."
)
def jaccard_divides_by_zero(a, b):
    words_a, words_b = set(a.split()), set(b.split())
    return len(words_a & words_b) / len(words_a | words_b)


edited(
    "jaccard_similarity",
    "jaccard_one_empty_is_one",
    "not words_a and not words_b",
    "not words_a or not words_b",
    says="If only one text is empty, your similarity is 1; it should be 1 only if both are.",
)
edited(
    "jaccard_similarity",
    "jaccard_only_the_empty_string",
    "if not words_a and not words_b",
    "if not a and not b",
    says='A text of spaces only has no words either: ask for the words, not for "".',
)
edited(
    "jaccard_similarity",
    "dice",
    "len(words_a & words_b) / len(words_a | words_b)",
    "2 * len(words_a & words_b) / (len(words_a) + len(words_b))",
    says="You divide by the mean number of words of the two texts (Dice); divide by the number of words in either.",
)
edited(
    "jaccard_similarity",
    "divided_by_the_sum",
    "len(words_a & words_b) / len(words_a | words_b)",
    "len(words_a & words_b) / (len(words_a) + len(words_b))",
    says="You divide by the sum of both numbers of words, which counts shared words twice; divide by the size "
    "of the union.",
)
edited(
    "jaccard_similarity",
    "divided_by_the_first",
    "len(words_a & words_b) / len(words_a | words_b)",
    "len(words_a & words_b) / max(len(words_a), 1)",
    says="You divide by the number of words of the first text only; divide by the number of words in either.",
)
edited(
    "jaccard_similarity",
    "divided_by_the_larger",
    "len(words_a & words_b) / len(words_a | words_b)",
    "len(words_a & words_b) / max(len(words_a), len(words_b))",
    says="You divide by the number of words of the longer text; divide by the number of words in either.",
)
edited(
    "jaccard_similarity",
    "divided_by_the_smaller",
    "len(words_a & words_b) / len(words_a | words_b)",
    "len(words_a & words_b) / max(1, min(len(words_a), len(words_b)))",
    says="You divide by the number of words of the shorter text; divide by the number of words in either.",
)
edited(
    "jaccard_similarity",
    "jaccard_distance",
    "return len(words_a & words_b) /",
    "return 1 - len(words_a & words_b) /",
    says="You return the distance, 1 minus the similarity.",
)
edited(
    "jaccard_similarity",
    "shared_not_divided",
    " / len(words_a | words_b)",
    "",
    says="You return how many words are shared; divide by how many occur in either.",
)


@wrong("jaccard_similarity", says="Words that occur several times count several times in your function; use sets.")
def jaccard_of_counts(a, b):
    counts_a, counts_b = Counter(a.split()), Counter(b.split())
    either = (counts_a | counts_b).total()
    return (counts_a & counts_b).total() / either if either else 1.0


@wrong(
    "jaccard_similarity", says="The words that both share count, but your union is a list in which words are repeated."
)
def union_as_a_list(a, b):
    words_a, words_b = a.split(), b.split()
    if not words_a and not words_b:
        return 1.0
    shared = set(words_a) & set(words_b)
    return len(shared) / (len(words_a) + len(words_b) - len(shared))


@wrong("jaccard_similarity", says="You compare the words at equal places; for Jaccard the place does not matter.")
def same_words_at_same_places(a, b):
    words_a, words_b = a.split(), b.split()
    if not words_a and not words_b:
        return 1.0
    return sum(x == y for x, y in zip(words_a, words_b)) / len({*words_a, *words_b})


@wrong(
    "jaccard_similarity",
    says="Two texts of white space only have similarity 0 in your function. They have no words either, so they are"
    ' alike: ask for the words, not for "".',
)
def jaccard_of_blanks_is_zero(a, b):
    if a == "" and b == "":
        return 1.0
    x, y = (set(a.split()), set(b.split()))
    return len(x & y) / max(len(x | y), 1)


@right("jaccard_similarity")
def jaccard_by_lists(a, b):
    words_a, words_b = list(dict.fromkeys(a.split())), list(dict.fromkeys(b.split()))
    shared = sum(word in words_b for word in words_a)
    either = len(words_a) + len(words_b) - shared
    if either == 0:
        return 1
    return shared / either


@right("jaccard_similarity")
def jaccard_by_arrays(a, b):
    words = np.array([*a.split(), *b.split()])
    if words.size == 0:
        return np.float64(1)
    shared = np.intersect1d(np.array(a.split(), dtype=str), np.array(b.split(), dtype=str))
    return np.float32(shared.size / np.unique(words).size)


# ---------------------------------------------------------------------------- exercise 6: cosine_similarity

edited(
    "cosine_similarity",
    "cosine_of_sets",
    "Counter(a.split()), Counter(b.split())",
    "Counter(set(a.split())), Counter(set(b.split()))",
    says="Each word counts once in your vectors; an entry is how often the word occurs.",
)
edited(
    "cosine_similarity",
    "cosine_of_characters",
    "Counter(a.split()), Counter(b.split())",
    "Counter(a), Counter(b)",
    says="You count characters; count words, text.split().",
)
edited(
    "cosine_similarity",
    "cosine_split_at_single_spaces",
    "Counter(a.split()), Counter(b.split())",
    'Counter(a.split(" ")), Counter(b.split(" "))',
    says='You split at spaces only, as split(" ") does, so a line break or a tab does not part two words; '
    "split() without an argument takes all white space.",
)
edited(
    "cosine_similarity",
    "cosine_without_capitals",
    "Counter(a.split()), Counter(b.split())",
    "Counter(a.lower().split()), Counter(b.lower().split())",
    says="You make capitals small; Dog and dog are two words here.",
)
edited(
    "cosine_similarity",
    "cosine_without_full_stops",
    "Counter(a.split()), Counter(b.split())",
    'Counter(a.replace(".", " ").split()), Counter(b.replace(".", " ").split())',
    says="You drop full stops, or all punctuation; here dog. and dog are two words.",
)
edited(
    "cosine_similarity",
    "cosine_empty_is_zero",
    "float(counts_a == counts_b)",
    "0.0",
    says="Two empty texts have similarity 0 in your function; they are equal, so it is 1.",
)
edited(
    "cosine_similarity",
    "cosine_one_empty_is_one",
    "float(counts_a == counts_b)",
    "1.0",
    says="If only one text is empty, your similarity is 1; it should be 1 only if both are.",
)
edited(
    "cosine_similarity",
    "cosine_divides_by_zero",
    "float(counts_a == counts_b)",
    "float('nan')  # what 0 / 0 gives",
    says="With an empty text your function divides 0 by 0; give these cases their own answers first.",
)
edited(
    "cosine_similarity",
    "without_the_roots",
    "np.sqrt((x @ x) * (y @ y))",
    "((x @ x) * (y @ y))",
    says="You divide by the squares of the lengths; take the roots.",
)
edited(
    "cosine_similarity",
    "one_root_too_many",
    "np.sqrt((x @ x) * (y @ y))",
    "np.sqrt(np.sqrt((x @ x) * (y @ y)))",
    says="You take the root once too often: the length of a vector is the root of the sum of its squares.",
)
edited(
    "cosine_similarity",
    "divided_by_sums_of_counts",
    "np.sqrt((x @ x) * (y @ y))",
    "(x.sum() * y.sum())",
    says="You divide by how many words the texts have; the length of a vector is the root of the sum of its squares.",
)
edited(
    "cosine_similarity",
    "divided_by_the_root_of_counts",
    "np.sqrt((x @ x) * (y @ y))",
    "np.sqrt(x.sum() * y.sum())",
    says="You add up the counts under the root; the length of a vector is the root of the sum of their squares.",
)
edited(
    "cosine_similarity",
    "lengths_added",
    "np.sqrt((x @ x) * (y @ y))",
    "(np.sqrt(x @ x) + np.sqrt(y @ y))",
    says="You divide by the sum of the two lengths; divide by their product.",
)
edited(
    "cosine_similarity",
    "one_length_only",
    "np.sqrt((x @ x) * (y @ y))",
    "(x @ x)",
    says="You divide by the length of the first vector twice; each of the two vectors has a length of its own.",
)
edited(
    "cosine_similarity",
    "not_divided",
    " / np.sqrt((x @ x) * (y @ y))",
    "",
    says="You return the dot product as it is; divide by the lengths of both vectors.",
)
edited(
    "cosine_similarity",
    "words_of_the_first_only",
    "sorted({*counts_a, *counts_b})",
    "sorted(counts_a)",
    says="Your vectors have entries for the words of the first text only, so the second vector comes out too short.",
)


@wrong(
    "cosine_similarity",
    says="You count only words that both texts have; the others make the vectors longer and the similarity smaller.",
)
def shared_words_only(a, b):
    counts_a, counts_b = Counter(a.split()), Counter(b.split())
    if not counts_a or not counts_b:
        return float(counts_a == counts_b)
    words = sorted({*counts_a, *counts_b})
    x = np.array([counts_a[word] for word in words])
    y = np.array([counts_b[word] for word in words])
    both = (x > 0) & (y > 0)
    x, y = x[both], y[both]
    return x @ y / np.sqrt((x @ x) * (y @ y)) if both.any() else 0.0


edited(
    "cosine_similarity",
    "cosine_distance",
    "return x @ y /",
    "return 1 - x @ y /",
    says="You return the distance, 1 minus the cosine.",
)
edited(
    "cosine_similarity",
    "angle_instead_of_cosine",
    "return x @ y / np.sqrt((x @ x) * (y @ y))",
    "return np.arccos(np.clip(x @ y / np.sqrt((x @ x) * (y @ y)), -1, 1))",
    says="You return the angle; its cosine is asked for.",
)


@wrong(
    "cosine_similarity",
    says="You add a small number to what you divide by, so that even equal texts come out below 1. Give empty "
    "texts their own answers first; then nothing is divided by 0.",
)
def cosine_small_number_added(a, b):
    x, y = (Counter(a.split()), Counter(b.split()))
    if not x and (not y):
        return 1.0
    words = sorted(set(x) | set(y))
    p = np.array([x[w] for w in words], dtype=float)
    q = np.array([y[w] for w in words], dtype=float)
    return float(p @ q) / (np.linalg.norm(p) * np.linalg.norm(q) + 1e-05)


@wrong(
    "cosine_similarity",
    says="You leave out words of one letter, as some libraries do; here every word of text.split() counts.",
)
def cosine_without_single_letters(a, b):
    x = Counter(w for w in a.split() if len(w) > 1)
    y = Counter(w for w in b.split() if len(w) > 1)
    if not x and (not y):
        return 1.0
    if not x or not y:
        return 0.0
    words = list(x | y)
    p, q = np.array([[c[w] for w in words] for c in (x, y)], dtype=float)
    return p @ q / np.linalg.norm(p) / np.linalg.norm(q)


@wrong(
    "cosine_similarity",
    says="You subtract the mean of the counts first, which makes it a correlation; the cosine takes the counts as "
    "they are.",
)
def cosine_of_centred_counts(a, b):
    x, y = (Counter(a.split()), Counter(b.split()))
    if not x or not y:
        return float(x == y)
    words = list(x | y)
    p = np.array([x[w] for w in words], dtype=float)
    q = np.array([y[w] for w in words], dtype=float)
    p, q = (p - p.mean(), q - q.mean())
    return float(p @ q / np.sqrt(p @ p * (q @ q) + 1e-12))


@right("cosine_similarity")
def cosine_by_dictionaries(a, b):
    import math

    words_a, words_b = a.split(), b.split()
    if not words_a and not words_b:
        return 1
    if not words_a or not words_b:
        return 0
    product = sum(words_a.count(word) * words_b.count(word) for word in set(words_a) & set(words_b))
    lengths = [math.sqrt(sum(words.count(word) ** 2 for word in set(words))) for words in (words_a, words_b)]
    return product / lengths[0] / lengths[1]


@right("cosine_similarity")
def cosine_of_pairs(a, b):
    a, b = a.split(), b.split()
    if len(a) == 0 or len(b) == 0:
        return 1.0 if len(a) == len(b) else 0.0

    def equal_pairs(one, other):
        return sum(x == y for x in one for y in other)

    return equal_pairs(a, b) / (equal_pairs(a, a) * equal_pairs(b, b)) ** 0.5


@right("cosine_similarity")
def cosine_of_unit_vectors(a, b):
    counts = [Counter(text.split()) for text in (a, b)]
    if not counts[0] and not counts[1]:
        return 1.0
    words = list(counts[0] | counts[1])
    x, y = (torch.tensor([float(count[word]) for word in words], dtype=torch.float64) for count in counts)
    return torch.nn.functional.normalize(x, dim=0) @ torch.nn.functional.normalize(y, dim=0)


survivor("cosine_similarity", "x @ y /", "(y) @ (x) /", "the dot product of two vectors is the same in either order")

# ---------------------------------------------------------------- exercise 7: damerau_levenshtein_similarity

edited(
    "damerau_levenshtein_similarity",
    "exchanges_not_counted",
    "if i > 1 and j > 1 and",
    "if False and",
    says="Two neighbours that are exchanged cost 2 edits in your function (plain Levenshtein); an exchange counts 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "exchanges_for_nothing",
    "d[i - 2, j - 2] + 1",
    "d[i - 2, j - 2]",
    says="Exchanging two neighbours costs nothing in your function; it counts 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "exchange_half_checked",
    " and a[i - 1] == b[j - 2]:",
    ":",
    says="Your condition for an exchange compares one pair of characters only; both have to match crosswise.",
)
edited(
    "damerau_levenshtein_similarity",
    "exchange_half_checked_the_other",
    "a[i - 2] == b[j - 1] and ",
    "",
    says="Your condition for an exchange compares one pair of characters only; both must fit, each with the "
    "other's place.",
)
edited(
    "damerau_levenshtein_similarity",
    "exchange_whenever_possible",
    "d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)",
    "d[i, j] = d[i - 2, j - 2] + 1",
    says="You exchange wherever it can be done, even where another way is shorter; take the smallest of all.",
)
edited(
    "damerau_levenshtein_similarity",
    "no_exchange_at_the_beginning",
    "if i > 1 and j > 1 and",
    "if i > 2 and j > 2 and",
    says="Your function sees no exchange of the first two characters; check where your condition begins.",
)
edited(
    "damerau_levenshtein_similarity",
    "replacement_counts_two",
    "(a[i - 1] != b[j - 1])",
    "2 * (a[i - 1] != b[j - 1])",
    says="A replacement costs 2 in your function (a deletion and an insertion); it counts 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "equal_characters_cost",
    "(a[i - 1] != b[j - 1])",
    "1",
    says="Equal characters cost an edit in your function; where the last ones are equal, nothing is added.",
)
edited(
    "damerau_levenshtein_similarity",
    "no_insertions",
    "min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)",
    "min(d[i - 1, j] + 1, replaced)",
    says="Your table knows no insertion, d[i, j-1] + 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "no_deletions",
    "min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)",
    "min(d[i, j - 1] + 1, replaced)",
    says="Your table knows no deletion, d[i-1, j] + 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "divided_by_both_lengths",
    "/ longer if",
    "/ (len(a) + len(b)) if",
    says="You divide by the sum of both lengths; divide by the length of the longer text.",
)
edited(
    "damerau_levenshtein_similarity",
    "divided_by_the_shorter_text",
    "/ longer if longer",
    "/ max(1, min(len(a), len(b))) if longer",
    says="You divide by the length of the shorter text; divide by that of the longer one.",
)
edited(
    "damerau_levenshtein_similarity",
    "divided_by_the_first_text",
    "/ longer if longer",
    "/ max(1, len(a)) if longer",
    says="You divide by the length of the first text; divide by that of the longer one.",
)
edited(
    "damerau_levenshtein_similarity",
    "share_of_edits",
    "return 1 - d[len(a), len(b)] /",
    "return d[len(a), len(b)] /",
    says="You return the share of edits; the similarity is 1 minus this.",
)
edited(
    "damerau_levenshtein_similarity",
    "distance_itself",
    "return 1 - d[len(a), len(b)] / longer if longer else 1.0",
    "return d[len(a), len(b)]",
    says="You return the distance; divide by the length of the longer text and subtract from 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "one_over_one_plus_distance",
    "return 1 - d[len(a), len(b)] / longer if longer else 1.0",
    "return 1 / (1 + d[len(a), len(b)])",
    says="You turn the distance into a similarity by 1 / (1 + distance); here it is 1 - distance / longer length.",
)


@wrong("damerau_levenshtein_similarity", says="You edit whole words; this similarity compares characters.")
def edits_of_words(a, b):
    a, b = a.split(), b.split()
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    d[0, :] = range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    longer = max(len(a), len(b))
    return 1 - d[len(a), len(b)] / longer if longer else 1.0


@wrong("damerau_levenshtein_similarity", says="You make capitals small; D and d are two characters here.")
def letters_without_capitals(a, b):
    a, b = a.lower(), b.lower()
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    d[0, :] = range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    longer = max(len(a), len(b))
    return 1 - d[len(a), len(b)] / longer if longer else 1.0


@wrong("damerau_levenshtein_similarity", says="You remove white space at the ends; here every character counts.")
def stripped(a, b):
    a, b = a.strip(), b.strip()
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    d[0, :] = range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    longer = max(len(a), len(b))
    return 1 - d[len(a), len(b)] / longer if longer else 1.0


@wrong("damerau_levenshtein_similarity", says="You leave out white space; here every character counts, spaces too.")
def spaces_removed(a, b):
    a, b = "".join(a.split()), "".join(b.split())
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    d[0, :] = range(len(b) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            replaced = d[i - 1, j - 1] + (a[i - 1] != b[j - 1])
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, replaced)
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    longer = max(len(a), len(b))
    return 1 - d[len(a), len(b)] / longer if longer else 1.0


edited(
    "damerau_levenshtein_similarity",
    "beginning_for_nothing",
    "d[0, :] = range(len(b) + 1)",
    "pass",
    says="The first row of your table is 0: characters at the beginning of the second text are inserted for nothing.",
)
edited(
    "damerau_levenshtein_similarity",
    "first_column_zero",
    "d[:, 0] = range(len(a) + 1)",
    "pass",
    says="The first column of your table is 0: characters at the beginning of the first text are deleted for nothing.",
)
edited(
    "damerau_levenshtein_similarity",
    "empty_texts_are_different",
    "if longer else 1.0",
    "if longer else 0.0",
    says="Two empty texts have similarity 0 in your function; they are equal, so it is 1.",
)
edited(
    "damerau_levenshtein_similarity",
    "empty_and_another_are_equal",
    "if longer else 1.0",
    "if a and b else 1.0",
    says="If only one text is empty, your similarity is 1; then every character of the other is an edit, so it is 0.",
)
edited(
    "damerau_levenshtein_similarity",
    "empty_texts_divide_by_zero",
    "return 1 - d[len(a), len(b)] / longer if longer else 1.0",
    "return 1 - int(d[len(a), len(b)]) / longer",
    says="With two empty texts your function divides 0 by 0; give this case its own answer.",
)
edited(
    "damerau_levenshtein_similarity",
    "white_space_is_empty",
    "if longer else 1.0",
    "if a.strip() or b.strip() else 1.0",
    says='A text of white space is not empty here, it has characters: "" and " " have similarity 0.',
)


@wrong(
    "damerau_levenshtein_similarity",
    says="Characters that were exchanged are edited again in your function (the unrestricted distance); with "
    "optimal string "
    'alignment "ca" and "abc" are 3 apart.',
)
def unrestricted_distance(a, b):
    last = {}
    top = len(a) + len(b)
    d = {(-1, -1): top}
    for i in range(len(a) + 1):
        d[i, -1], d[i, 0] = top, i
    for j in range(len(b) + 1):
        d[-1, j], d[0, j] = top, j
    for i in range(1, len(a) + 1):
        match = 0
        for j in range(1, len(b) + 1):
            row, column = last.get(b[j - 1], 0), match
            cost = int(a[i - 1] != b[j - 1])
            if not cost:
                match = j
            d[i, j] = min(
                d[i - 1, j - 1] + cost,
                d[i, j - 1] + 1,
                d[i - 1, j] + 1,
                d[row - 1, column - 1] + (i - row - 1) + 1 + (j - column - 1),
            )
        last[a[i - 1]] = i
    return 1 - d[len(a), len(b)] / max(len(a), len(b)) if a or b else 1.0


@wrong(
    "damerau_levenshtein_similarity",
    says="You compare the characters at equal places; after one insertion nothing fits any more. Find the "
    "fewest edits.",
)
def places_compared(a, b):
    longer = max(len(a), len(b))
    return sum(x == y for x, y in zip(a, b)) / longer if longer else 1.0


@wrong(
    "damerau_levenshtein_similarity",
    says="You use the ratio of difflib, which measures matching blocks; the fewest edits are asked for.",
)
def ratio_of_difflib(a, b):
    import difflib

    return difflib.SequenceMatcher(None, a, b).ratio()


@wrong(
    "damerau_levenshtein_similarity",
    says="You go from left to right and decide at each difference at once; the fewest edits need a table of all "
    "beginnings.",
)
def greedy_edits(a, b):
    i = j = edits = 0
    while i < len(a) and j < len(b):
        if a[i] == b[j]:
            i, j = i + 1, j + 1
        elif a[i : i + 2] == b[j : j + 2][::-1] and len(a[i : i + 2]) == 2:
            i, j, edits = i + 2, j + 2, edits + 1
        else:
            i, j, edits = i + 1, j + 1, edits + 1
    edits += len(a) - i + len(b) - j
    longer = max(len(a), len(b))
    return 1 - edits / longer if longer else 1.0


@wrong("damerau_levenshtein_similarity", says="You compare which characters occur; their order is what counts here.")
def sets_of_characters(a, b):
    either = set(a) | set(b)
    return len(set(a) & set(b)) / len(either) if either else 1.0


@wrong(
    "damerau_levenshtein_similarity",
    says="You divide by the mean length of the two texts; divide by the length of the longer one.",
)
def divided_by_the_mean_length(a, b):
    n, m = (len(a), len(b))
    if n + m == 0:
        return 1.0
    d = [[max(i, j) if i * j == 0 else 0 for j in range(m + 1)] for i in range(n + 1)]
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i][j] = min(d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and (a[i - 1] == b[j - 2]) and (a[i - 2] == b[j - 1]):
                d[i][j] = min(d[i][j], d[i - 2][j - 2] + 1)
    return max(0.0, 1 - d[n][m] / ((n + m) / 2))


@wrong(
    "damerau_levenshtein_similarity",
    says="You also exchange characters that are not neighbours, with others between them, for one edit; only two "
    "neighbours can be exchanged.",
)
def exchanges_over_a_gap(a, b):
    n, m = (len(a), len(b))
    if max(n, m) == 0:
        return 1.0
    d = [[0] * (m + 1) for _ in range(n + 1)]
    for i in range(n + 1):
        for j in range(m + 1):
            if i == 0 or j == 0:
                d[i][j] = i + j
                continue
            options = [d[i - 1][j] + 1, d[i][j - 1] + 1, d[i - 1][j - 1] + (a[i - 1] != b[j - 1])]
            for gap in (2, 3):
                between = a[i - gap + 1 : i - 1] == b[j - gap + 1 : j - 1]
                if between and i >= gap <= j and a[i - 1] == b[j - gap] and a[i - gap] == b[j - 1]:
                    options.append(d[i - gap][j - gap] + 1)
            d[i][j] = min(options)
    return 1 - d[n][m] / max(n, m)


@right("damerau_levenshtein_similarity")
def distance_by_recursion(a, b):
    from functools import cache

    @cache
    def distance(i, j):
        if i == 0 or j == 0:
            return i + j
        best = min(distance(i - 1, j) + 1, distance(i, j - 1) + 1, distance(i - 1, j - 1) + int(a[i - 1] != b[j - 1]))
        if i >= 2 and j >= 2 and a[i - 2 : i] == b[j - 1] + b[j - 2]:
            best = min(best, distance(i - 2, j - 2) + 1)
        return best

    if a == b:
        return 1
    return 1 - distance(len(a), len(b)) / max(len(a), len(b))


@right("damerau_levenshtein_similarity")
def distance_in_three_rows(a, b):
    if len(a) < len(b):
        a, b = b, a
    if not a:
        return 1.0
    before, row = None, list(range(len(b) + 1))
    for i, x in enumerate(a):
        new = [i + 1]
        for j, y in enumerate(b):
            new.append(min(row[j + 1] + 1, new[j] + 1, row[j] + (x != y)))
            if i and j and x == b[j - 1] and a[i - 1] == y:
                new[-1] = min(new[-1], before[j - 1] + 1)
        before, row = row, new
    return (len(a) - row[-1]) / len(a)


@right("damerau_levenshtein_similarity")
def distance_by_diagonals(a, b):
    # steps from corner to corner of the table, the cheapest first (Dijkstra)
    import heapq

    todo, done = [(0, 0, 0)], set()
    while todo:
        cost, i, j = heapq.heappop(todo)
        if (i, j) == (len(a), len(b)):
            return 1 - cost / (max(len(a), len(b)) or 1)
        if (i, j) in done:
            continue
        done.add((i, j))
        if i < len(a):
            heapq.heappush(todo, (cost + 1, i + 1, j))
        if j < len(b):
            heapq.heappush(todo, (cost + 1, i, j + 1))
        if i < len(a) and j < len(b):
            heapq.heappush(todo, (cost + (a[i] != b[j]), i + 1, j + 1))
        if i + 1 < len(a) and j + 1 < len(b) and a[i] == b[j + 1] and a[i + 1] == b[j]:
            heapq.heappush(todo, (cost + 1, i + 2, j + 2))


NEVER_BELOW = "the index is at least 1 in these loops, so more than 1 and not equal to 1 are the same"
survivor("damerau_levenshtein_similarity", "if i>1", "if i!=1", NEVER_BELOW)
survivor("damerau_levenshtein_similarity", "and j>1", "and j!=1", NEVER_BELOW)

# ----------------------------------------------------------------------------- exercise 8: AttentionDecoder

edited(
    "AttentionDecoder",
    "decoder_without_tanh",
    "torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))",
    "self.W_s(state).unsqueeze(1) + self.W_h(H)",
    says="Your scores leave out the tanh; without it the state adds the same number to every score.",
)
edited(
    "AttentionDecoder",
    "decoder_state_left_out",
    "self.W_s(state).unsqueeze(1) + self.W_h(H)",
    "self.W_h(H)",
    says="Your weights do not depend on the state, so the decoder looks at the same place at every step.",
)


@wrong(
    "AttentionDecoder",
    says="You move the cell before you look; here the previous state, as it comes in, asks the annotations.",
    based_on="AttentionDecoder",
)
class new_state_asks:
    def step(self, y_prev, state, H, mask):
        nothing = H.new_zeros(len(H), H.shape[2])
        asks = self.cell(torch.cat([self.embedding(y_prev), nothing], dim=1), state)
        hidden = torch.tanh(self.W_s(asks).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


@wrong(
    "AttentionDecoder",
    says="Your mask works the other way round: masked_fill fills where its argument is True, and here True means "
    "'may be read'.",
    based_on="AttentionDecoder",
)
class mask_inverted:
    def step(self, y_prev, state, H, mask):
        mask = ~mask
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


@wrong(
    "AttentionDecoder",
    says="Your result does not depend on the mask: padding gets weights as well.",
    based_on="AttentionDecoder",
)
class mask_ignored:
    def step(self, y_prev, state, H, mask):
        mask = torch.ones_like(mask)
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


@wrong(
    "AttentionDecoder",
    says="You set padded annotations to zero, but they still take part in the softmax and get weights.",
    based_on="AttentionDecoder",
)
class padding_zeroed_instead:
    def step(self, y_prev, state, H, mask):
        H, mask = H * mask.unsqueeze(2), torch.ones_like(mask)
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


edited(
    "AttentionDecoder",
    "mask_too_late",
    ".masked_fill(~mask, -torch.inf)",
    "",
    says="You set the weights of padding to zero after the softmax only, so the rest no longer sums to 1; "
    "padding should not take part in the softmax at all.",
)
edited(
    "AttentionDecoder",
    "mask_minus_ten",
    "masked_fill(~mask, -torch.inf)",
    "masked_fill(~mask, -10.0)",
    says="You give padding the score -10, which is not always small: the other scores may lie lower. Exclude it "
    "completely.",
)


@wrong(
    "AttentionDecoder",
    says="You multiply the scores by the mask; a score of 0 still gets a weight. Padding needs minus infinity.",
    based_on="AttentionDecoder",
)
class scores_times_mask:
    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).mul(mask)
        alpha = scores.softmax(dim=1)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


edited(
    "AttentionDecoder",
    "nan_for_an_empty_row",
    "scores.softmax(dim=1).masked_fill(~mask, 0.0)",
    "scores.softmax(dim=1)",
    says="A row of the mask without a True gives NaN in your decoder; weights and context should be zero there.",
)


@wrong(
    "AttentionDecoder",
    says="A row of the mask without a True gets equal weights in your decoder; weights and context should be "
    "zero there.",
    based_on="AttentionDecoder",
)
class uniform_for_an_empty_row:
    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -1e9)
        alpha = scores.softmax(dim=1)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


@wrong(
    "AttentionDecoder",
    says="You add minus infinity to the scores. Your answers are right, but where a row of the mask is empty the "
    "softmax's NaN flows back into the gradients; masked_fill on the scores keeps it away.",
    based_on="AttentionDecoder",
)
class minus_infinity_added:
    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).add(torch.zeros(mask.shape).masked_fill(~mask, -torch.inf))
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return logits, state, alpha


edited(
    "AttentionDecoder",
    "softmax_over_the_batch",
    "softmax(dim=1)",
    "softmax(dim=0)",
    says="Your softmax runs over the sequences of the batch (dim=0); it should run over the annotations of each.",
)
edited(
    "AttentionDecoder",
    "exponentials_overflow",
    "scores.softmax(dim=1)",
    "(scores.exp() / scores.exp().sum(dim=1, keepdim=True))",
    says="Large scores overflow in your exp; subtract the largest score first, or use softmax, which does it.",
)
edited(
    "AttentionDecoder",
    "squeezes_everything",
    ".squeeze(2)",
    ".squeeze()",
    says="squeeze() without an axis also removes B or T_x where they are 1; say which axis.",
)
edited(
    "AttentionDecoder",
    "cell_reads_context_first",
    "torch.cat([self.embedding(y_prev), context], dim=1)",
    "torch.cat([context, self.embedding(y_prev)], dim=1)",
    says="Your cell reads [context, embedding]; the embedding comes first.",
)
edited(
    "AttentionDecoder",
    "output_reads_context_first",
    "torch.cat([state, context], dim=1)",
    "torch.cat([context, state], dim=1)",
    says="Your output layer reads [context, state]; the state comes first.",
)


@wrong(
    "AttentionDecoder",
    says="Your output layer reads the state from before the step; it should read the new one.",
    based_on="AttentionDecoder",
)
class output_reads_the_old_state:
    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        old, state = state, self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([old, context], dim=1))
        return logits, state, alpha


@wrong(
    "AttentionDecoder",
    says="You return the state that came in; the next step needs the new one.",
    based_on="AttentionDecoder",
)
class old_state_returned:
    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))  # (B, T_x, d_attention)
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)  # also where an empty row has become NaN
        context = torch.einsum("bt,btm->bm", alpha, H)
        new = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([new, context], dim=1))
        return logits, state, alpha


edited(
    "AttentionDecoder",
    "cell_starts_from_zero",
    "context], dim=1), state)",
    "context], dim=1))",
    says="Your cell is not given the previous state and starts from zeros at every step.",
)
edited(
    "AttentionDecoder",
    "context_in_the_cell_only",
    "torch.cat([state, context], dim=1)",
    "torch.cat([state, torch.zeros_like(context)], dim=1)",
    says="Your output layer does not see the context.",
)
edited(
    "AttentionDecoder",
    "cell_without_context",
    "torch.cat([self.embedding(y_prev), context], dim=1)",
    "torch.cat([self.embedding(y_prev), torch.zeros_like(context)], dim=1)",
    says="Your cell does not see the context.",
)
edited(
    "AttentionDecoder",
    "context_of_equal_weights",
    'torch.einsum("bt,btm->bm", alpha, H)',
    "(H * mask.unsqueeze(2)).sum(dim=1) / mask.sum(dim=1, keepdim=True).clamp(min=1)",
    says="Your context is the plain mean of the annotations; the weights do not enter.",
)
edited(
    "AttentionDecoder",
    "hard_context",
    'torch.einsum("bt,btm->bm", alpha, H)',
    "H[torch.arange(len(H)), alpha.argmax(dim=1)]",
    says="Your context is the annotation with the largest weight alone; it should be the weighted average of all.",
)
edited(
    "AttentionDecoder",
    "logits_through_softmax",
    "return logits, state, alpha",
    "return logits.softmax(dim=1), state, alpha",
    says="You return probabilities; logits are asked for, the numbers from before a softmax.",
)
edited(
    "AttentionDecoder",
    "state_returned_first",
    "return logits, state, alpha",
    "return state, logits, alpha",
    says="You return the state first; the order is logits, state, alpha.",
)
edited(
    "AttentionDecoder",
    "alpha_forgotten",
    "return logits, state, alpha",
    "return logits, state",
    says="You return two values; the weights, alpha, are asked for as the third.",
)
edited(
    "AttentionDecoder",
    "context_in_place_of_alpha",
    "return logits, state, alpha",
    "return logits, state, context",
    says="Your third value is the context; alpha, the weights, is asked for.",
)
edited(
    "AttentionDecoder",
    "weights_without_gradient",
    '"bt,btm->bm", alpha, H',
    '"bt,btm->bm", alpha.detach(), H',
    says="Your weights are cut off from the gradient (detach, .data or no_grad), so W_s, W_h and v can never learn.",
)
edited(
    "AttentionDecoder",
    "state_without_gradient",
    "return logits, state, alpha",
    "return logits, state.detach(), alpha",
    says="The state that you return is cut off from the gradient (detach), so later steps cannot teach earlier ones.",
)
edited(
    "AttentionDecoder",
    "v_with_bias",
    "nn.Linear(d_attention, 1, bias=False)",
    "nn.Linear(d_attention, 1)",
    says="Your v has a bias, which nn.Linear adds unless told otherwise; W_s, W_h and v have none.",
)
edited(
    "AttentionDecoder",
    "W_s_with_bias",
    "nn.Linear(d_hidden, d_attention, bias=False)",
    "nn.Linear(d_hidden, d_attention)",
    says="Your W_s has a bias, which nn.Linear adds unless told otherwise; W_s, W_h and v have none.",
)
edited(
    "AttentionDecoder",
    "embedding_with_padding",
    "nn.Embedding(n_tokens, d_embed)",
    "nn.Embedding(n_tokens, d_embed, padding_idx=0)",
    says="Token 0 is padding to your embedding (padding_idx), and so never learns; it is a token like others.",
)
edited(
    "AttentionDecoder",
    "decoder_with_a_layer_too_many",
    "nn.Embedding(n_tokens, d_embed)",
    "nn.Embedding(n_tokens, d_embed); self.extra = nn.Linear(d_hidden, d_hidden)",
    says="Your decoder has parameters beside the six layers: something that learns and that was not asked for.",
)
edited(
    "AttentionDecoder",
    "output_without_bias",
    "nn.Linear(d_hidden + d_annotation, n_tokens)",
    "nn.Linear(d_hidden + d_annotation, n_tokens, bias=False)",
    says="Your output layer has no bias; W_s, W_h and v have none, the output layer has one.",
)
edited(
    "AttentionDecoder",
    "plain_recurrent_cell",
    "nn.GRUCell(",
    "nn.RNNCell(",
    says="Your cell is a plain recurrent one; the task asks for nn.GRUCell.",
)


@wrong(
    "AttentionDecoder",
    says="Your decoder keeps the context for the next call, so its cell reads the one of the call before; step "
    "needs nothing but its arguments.",
)
class ContextOfTheCallBefore(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)
        self.context = None

    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)
        context = (alpha.unsqueeze(2) * H).sum(dim=1)
        kept = self.context
        if kept is None or kept.shape != context.shape:
            kept = torch.zeros_like(context)
        state = self.cell(torch.cat([self.embedding(y_prev), kept], dim=1), state)
        self.context = context.detach()
        return self.output(torch.cat([state, context], dim=1)), state, alpha


@wrong("AttentionDecoder", says="You write the new state into the tensor that came in; leave the inputs as they are.")
class StateChangedInPlace(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)
        context = (alpha.unsqueeze(2) * H).sum(dim=1)
        new = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        state.data.copy_(new.detach())
        return self.output(torch.cat([new, context], dim=1)), new, alpha


@wrong(
    "AttentionDecoder",
    says="squeeze() without an axis also removes B or T_x where they are 1; say which axis, for the scores and for"
    " the context.",
)
class decoder_squeezes_everything(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        scores = self.v(torch.tanh(self.W_s(state)[:, None] + self.W_h(H))).squeeze()
        scores = scores.masked_fill(~mask, float("-inf"))
        alpha = torch.softmax(scores, dim=-1).masked_fill(~mask, 0.0)
        context = torch.bmm(alpha.unsqueeze(1), H).squeeze()
        new_state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        logits = self.output(torch.cat([new_state, context], dim=-1))
        return (logits, new_state, alpha)


@wrong(
    "AttentionDecoder",
    says="Your decoder computes W_h H once and keeps it, so later calls do not see their own annotations; step "
    "needs nothing but its arguments.",
)
class annotations_of_the_first_call_kept(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)
        self.keys = None

    def step(self, y_prev, state, H, mask):
        if self.keys is None:
            self.keys = self.W_h(H)
        e = self.v(torch.tanh(self.W_s(state).unsqueeze(1) + self.keys)).squeeze(-1)
        e = e.masked_fill(~mask, float("-inf"))
        alpha = torch.softmax(e, dim=-1).masked_fill(~mask, 0)
        context = torch.bmm(alpha.unsqueeze(1), H).squeeze(1)
        new_state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        logits = self.output(torch.cat([new_state, context], dim=-1))
        return (logits, new_state, alpha)


@wrong(
    "AttentionDecoder",
    says="You write zeros into H where it is padding; the caller's tensor changes. The mask on the scores is enough.",
)
class padding_wiped_out_in_H(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        H[~mask] = 0
        e = self.v(torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))).squeeze(-1)
        e = e.masked_fill(~mask, float("-inf"))
        alpha = torch.softmax(e, dim=-1).masked_fill(~mask, 0)
        context = torch.bmm(alpha.unsqueeze(1), H).squeeze(1)
        new_state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        logits = self.output(torch.cat([new_state, context], dim=-1))
        return (logits, new_state, alpha)


@wrong(
    "AttentionDecoder",
    says="A sequence without an annotation to read keeps its old state in your decoder; the step goes on with it, "
    "only with a context of zeros.",
)
class empty_row_keeps_the_old_state(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        e = self.v(torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))).squeeze(-1)
        alpha = torch.softmax(e.masked_fill(~mask, float("-inf")), dim=-1).masked_fill(~mask, 0)
        context = torch.bmm(alpha.unsqueeze(1), H).squeeze(1)
        new_state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        active = mask.any(dim=1, keepdim=True)
        new_state = torch.where(active, new_state, state)
        logits = self.output(torch.cat([new_state, context], dim=-1))
        return (logits, new_state, alpha)


@wrong(
    "AttentionDecoder",
    says="Your output layer reads a second context, for which the new state asked; there is one look in a step, "
    "and both cell and output read its context.",
)
class second_look_for_the_output(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):

        def look(query):
            e = self.v(torch.tanh(self.W_s(query).unsqueeze(1) + self.W_h(H))).squeeze(-1)
            a = torch.softmax(e.masked_fill(~mask, float("-inf")), dim=-1).masked_fill(~mask, 0)
            return (a, torch.bmm(a.unsqueeze(1), H).squeeze(1))

        alpha, context = look(state)
        new_state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        _, context = look(new_state)
        logits = self.output(torch.cat([new_state, context], dim=-1))
        return (logits, new_state, alpha)


for name, score in {"thousand": -1000.0, "ten_thousand": -10000.0}.items():
    edited(
        "AttentionDecoder",
        f"mask_minus_{name}",
        "masked_fill(~mask, -torch.inf)",
        f"masked_fill(~mask, {score})",
        says="You give padding a finite score in place of minus infinity; the other scores may be as low or lower, and "
        "then padding takes a share or all of it. Exclude it completely.",
    )


@wrong(
    "AttentionDecoder",
    says="You share out anew what the mask leaves of a softmax over all annotations; where padding has a far larger "
    "score, nothing is left. Padding should not take part in the softmax at all.",
)
class DecoderThatRenormalises(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.cell = nn.GRUCell(input_size=d_embed + d_annotation, hidden_size=d_hidden)
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        scores = self.v(torch.tanh(self.W_h(H) + self.W_s(state)[:, None, :]))[..., 0]
        weights = torch.softmax(scores, dim=-1) * mask
        alpha = weights / weights.sum(dim=-1, keepdim=True).clamp(min=1e-9)
        context = torch.bmm(alpha.unsqueeze(1), H).squeeze(1)
        state = self.cell(torch.cat((self.embedding(y_prev), context), dim=-1), state)
        return self.output(torch.cat((state, context), dim=-1)), state, alpha


@right("AttentionDecoder")
class DecoderWithOwnSoftmax(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        for name, layer in {
            "embedding": nn.Embedding(n_tokens, d_embed),
            "cell": nn.GRUCell(d_embed + d_annotation, d_hidden),
            "W_s": nn.Linear(d_hidden, d_attention, False),
            "W_h": nn.Linear(d_annotation, d_attention, False),
            "v": nn.Linear(d_attention, 1, False),
            "output": nn.Linear(d_hidden + d_annotation, n_tokens),
        }.items():
            self.add_module(name, layer)
        self.register_buffer("smallest", torch.tensor(1e-30))

    def step(self, y_prev, state, H, mask):
        B, T_x, m = H.shape
        asked = self.W_s(state).repeat_interleave(T_x, dim=0) + self.W_h(H.reshape(B * T_x, m))
        scores = (torch.tanh(asked) @ self.v.weight.T).view(B, T_x)
        scores = torch.where(mask, scores, torch.finfo(scores.dtype).min)
        powers = torch.exp(scores - scores.max(dim=1, keepdim=True).values) * mask
        alpha = powers / torch.maximum(powers.sum(dim=1, keepdim=True), self.smallest)
        context = (alpha[:, :, None] * H).sum(1)
        new_state = self.cell(torch.hstack([self.embedding(y_prev), context]), state)
        return [self.output(torch.hstack([new_state, context])), new_state, alpha]


@right("AttentionDecoder")
class DecoderOneSequenceAtATime(torch.nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        torch.nn.Module.__init__(self)
        self.embedding = torch.nn.Embedding(n_tokens, d_embed)
        self.W_s = torch.nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = torch.nn.Linear(d_annotation, d_attention, bias=False)
        self.v = torch.nn.Linear(d_attention, 1, bias=False)
        self.cell = torch.nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = torch.nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        logits, states, alphas = [], [], []
        for b in range(len(y_prev)):
            alpha, context = torch.zeros(H.shape[1]), torch.zeros(H.shape[2])
            allowed = torch.nonzero(mask[b])[:, 0]
            if len(allowed) > 0:
                scores = self.v(torch.tanh(self.W_s(state[b]) + self.W_h(H[b, allowed])))[:, 0]
                weights = torch.softmax(scores, dim=0)
                alpha = alpha.index_put((allowed,), weights)
                context = weights @ H[b, allowed]
            new = self.cell(torch.cat([self.embedding(y_prev[b]), context]), state[b])
            logits.append(self.output(torch.cat([new, context])))
            states.append(new)
            alphas.append(alpha)
        return torch.stack(logits), torch.stack(states), torch.stack(alphas)


@right("AttentionDecoder")
class DecoderWithAHelper(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.W_s, self.W_h = (nn.Linear(d, d_attention, bias=False) for d in (d_hidden, d_annotation))
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def weights(self, state, H, mask):
        scores = self.v(torch.tanh(self.W_s(state[:, None]) + self.W_h(H))).transpose(1, 2)  # (B, 1, T_x)
        scores = scores.masked_fill(mask.logical_not()[:, None], float("-inf"))
        return torch.nan_to_num(nn.functional.softmax(scores, dim=2), nan=0.0)

    def forward(self, y_prev, state, H, mask):
        alpha = self.weights(state, H, mask)
        context = (alpha @ H).flatten(1)
        state = self.cell(torch.cat([self.embedding(y_prev), context], 1), state)
        return self.output(torch.cat([state, context], 1)), state, alpha.flatten(1)

    def step(self, y_prev, state, H, mask):
        return self(y_prev, state, H, mask)


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong(
    "additive_scores",
    says="You multiply the state's matrix with the annotations and the annotations' with the state: the two stand in "
    "another order in your concatenation than their matrices.",
)
def state_and_annotation_swapped(s, H, W_s, W_h, v):
    W = np.concatenate([W_s, W_h], axis=1)
    T = H.shape[0]
    pairs = np.concatenate([H, np.tile(s, (T, 1))], axis=1)
    return np.tanh(pairs @ W.T) @ v


@wrong(
    "additive_scores",
    says="You reshape the projected annotations where they should be transposed. Reshaping keeps the order of the "
    "numbers and mixes the annotations up.",
)
def reshape_for_transpose(s, H, W_s, W_h, v):
    T, a = H.shape[0], v.shape[0]
    proj = (W_h @ H.T).reshape(T, a)
    return (np.tanh(proj + W_s @ s) * v).sum(axis=1)


@wrong(
    "additive_scores",
    says="Only the annotation goes through your tanh; the state is added to it first, so that the two meet inside.",
)
def state_outside_the_tanh(s, H, W_s, W_h, v):
    scores = np.zeros(H.shape[0], dtype=float)
    for j in range(H.shape[0]):
        scores[j] = np.dot(v, np.tanh(np.dot(W_h, H[j])) + np.dot(W_s, s))
    return scores


@wrong(
    "additive_scores",
    says="You take the tanh of both parts apart and average over the width; state and annotation meet inside one "
    "tanh, and the products with v are summed.",
)
def tanh_apart_and_mean(s, H, W_s, W_h, v):
    left = np.tanh(W_s @ s)
    right = np.tanh(H @ W_h.T)
    return np.mean((left + right) * v, axis=-1)


@wrong(
    "attend",
    says="You divide the scores by the root of a width, as dot products need it. Additive scores have no scale.",
)
def scores_divided_by_a_root(s, H, W_s, W_h, v):
    scale = np.sqrt(H.shape[-1])
    e = additive_scores(s, H, W_s, W_h, v) / scale
    p = np.exp(e - e.max())
    p = p / p.sum()
    return p, np.einsum("t,tm->m", p, H)


@wrong(
    "attend",
    says="You divide what the scores are above the smallest one by its sum; a softmax applies the exponential "
    "function first.",
)
def shares_instead_of_softmax(s, H, W_s, W_h, v):
    e = additive_scores(s, H, W_s, W_h, v)
    e = e - e.min()
    total = e.sum()
    alpha = e / total if total > 0 else np.full(len(e), 1 / len(e))
    return alpha, alpha @ H


@wrong(
    "alignment_matrix",
    says="Your states see the annotations up to their own number only; the text to be read is there from the "
    "beginning, and all of it may be looked at.",
)
def causal_alignment(S, H, W_s, W_h, v):
    e = np.array([additive_scores(s, H, W_s, W_h, v) for s in S])
    allowed = np.tril(np.ones(e.shape, dtype=bool))
    e = np.where(allowed, e, -np.inf)
    e = np.exp(e - e.max(axis=1, keepdims=True))
    return e / e.sum(axis=1, keepdims=True)


@wrong(
    "alignment_matrix",
    says="You reshape the table of scores where it should be transposed, which mixes states and annotations up.",
)
def reshape_of_the_table(S, H, W_s, W_h, v):
    keys = (H @ W_h.T)[:, None, :]
    queries = (S @ W_s.T)[None, :, :]
    e = (np.tanh(keys + queries) * v).sum(axis=-1)  # (T_x, T_y)
    e = e.reshape(len(S), len(H))
    e = np.exp(e - e.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


@wrong(
    "alignment_matrix",
    says="In your alignment the columns sum to 1, and the scores are divided by the root of a width. Each state has "
    "a row of weights that sum to 1, and additive scores have no scale.",
)
def columns_and_scaled(S, H, W_s, W_h, v):
    e = np.tanh((S @ W_s.T)[:, None] + (H @ W_h.T)[None]) @ v / np.sqrt(v.size)
    e = np.exp(e - e.max(axis=0, keepdims=True))
    return e / e.sum(axis=0, keepdims=True)


@wrong(
    "cosine_similarity", says="You weight the words by how rare they are (tf-idf); here the plain counts are compared."
)
def weighted_by_rarity(a, b):
    ca, cb = Counter(a.split()), Counter(b.split())
    if not ca or not cb:
        return 1.0 if ca == cb else 0.0
    vocab = list(ca | cb)
    idf = np.array([np.log(3 / (1 + (w in ca) + (w in cb))) + 1 for w in vocab])
    x = np.array([ca[w] for w in vocab]) * idf
    y = np.array([cb[w] for w in vocab]) * idf
    return x @ y / np.sqrt((x @ x) * (y @ y))


@wrong(
    "cosine_similarity",
    says='Texts of nothing but blanks have no words, so two of them are alike, and so are one and "": similarity 1. '
    "Your function gives 0 for some of these pairs.",
)
def blanks_taken_for_words(a, b):
    if len(a) == 0 or len(b) == 0:
        return float(len(a) == len(b))
    ca, cb = Counter(a.split()), Counter(b.split())
    dot = sum(ca[w] * cb[w] for w in ca)
    norm = np.sqrt(sum(c * c for c in ca.values())) * np.sqrt(sum(c * c for c in cb.values()))
    return dot / norm if norm > 0 else 0.0


@wrong(
    "damerau_levenshtein_similarity",
    says="Where two characters are exchanged you take that step without comparing; another way may be cheaper. Take "
    "the smallest of all.",
)
def exchange_always_taken(a, b):
    n, m = len(a), len(b)
    if n == 0 and m == 0:
        return 1.0
    d = np.zeros((n + 1, m + 1))
    d[:, 0] = range(n + 1)
    d[0, :] = range(m + 1)
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            if a[i - 1] == b[j - 1]:
                d[i, j] = d[i - 1, j - 1]
            elif i > 1 and j > 1 and a[i - 2] + a[i - 1] == b[j - 1] + b[j - 2]:
                d[i, j] = d[i - 2, j - 2] + 1
            else:
                d[i, j] = 1 + min(d[i - 1, j], d[i, j - 1], d[i - 1, j - 1])
    return 1 - d[n, m] / max(n, m)


@wrong(
    "damerau_levenshtein_similarity",
    says="You divide by the length of the first text; the distance is compared with that of the longer one.",
)
def divided_by_the_first_length(a, b):
    if not a:
        return 1.0 if not b else 0.0
    n, m = len(a), len(b)
    d = {}
    for i in range(n + 1):
        d[i, 0] = i
    for j in range(m + 1):
        d[0, j] = j
    for i in range(1, n + 1):
        for j in range(1, m + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i >= 2 and j >= 2 and a[i - 2 : i] == b[j - 2 : j][::-1]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return max(0.0, 1 - d[n, m] / n)


@wrong(
    "AttentionDecoder",
    says="Your cell runs first, without a context, and its new state asks. Here the previous state asks, and the "
    "cell reads the context.",
)
class cell_before_attention(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def attend(self, state, H, mask):
        e = self.v(torch.tanh(self.W_s(state)[:, None] + self.W_h(H))).squeeze(-1)
        some = mask.any(dim=1, keepdim=True)
        e = e.masked_fill(~mask, float("-inf")).masked_fill(~some, 0.0)
        alpha = torch.softmax(e, dim=1) * mask
        return (alpha, torch.einsum("bt,btm->bm", alpha, H))

    def step(self, y_prev, state, H, mask):
        emb = self.embedding(y_prev)
        nothing = torch.zeros(H.shape[0], H.shape[2], dtype=H.dtype)
        state = self.cell(torch.cat([emb, nothing], dim=1), state)
        alpha, context = self.attend(state, H, mask)
        logits = self.output(torch.cat([state, context], dim=1))
        return (logits, state, alpha)


@wrong(
    "AttentionDecoder",
    says="squeeze() without an axis removes every axis of size 1, also that of a single text or a single annotation. "
    "Say which axis you mean.",
)
class squeezed_too_much(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        e = self.v(torch.tanh(self.W_s(state)[:, None] + self.W_h(H))).squeeze()
        e = e.masked_fill(~mask, -torch.inf)
        alpha = torch.softmax(e, dim=-1)
        alpha = torch.where(mask, alpha, torch.zeros_like(alpha))
        context = torch.matmul(alpha[:, None], H).squeeze(1)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        logits = self.output(torch.cat([state, context], dim=1))
        return (logits, state, alpha)


@wrong(
    "AttentionDecoder",
    says="You keep the projected annotations from an earlier call, and other annotations of the same shape then get "
    "those. What depends on an argument is computed from it each time.",
)
class projections_kept(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)
        self.keys, self.keys_of = (None, None)

    def step(self, y_prev, state, H, mask):
        if self.keys is None or self.keys.shape[:2] != H.shape[:2]:
            self.keys = self.W_h(H)
        e = self.v(torch.tanh(self.W_s(state)[:, None, :] + self.keys)).squeeze(-1)
        alpha = torch.softmax(e.masked_fill(~mask, float("-inf")), dim=1).nan_to_num(0)
        context = (alpha[:, :, None] * H).sum(dim=1)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        return (self.output(torch.cat([state, context], dim=1)), state, alpha)


@wrong(
    "AttentionDecoder",
    says="Your output layer reads the context before the state, and you return log-probabilities; it reads state and "
    "context in this order, and its numbers are the logits.",
)
class context_first_and_log_softmax(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        e = self.v(torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))).squeeze(-1)
        alpha = torch.softmax(e.masked_fill(~mask, float("-inf")), dim=-1).nan_to_num(0)
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=-1), state)
        out = self.output(torch.cat([context, state], dim=-1))
        return (torch.log_softmax(out, dim=-1), state, alpha)


@wrong(
    "AttentionDecoder",
    says="You cut large scores off before exp, so that scores beyond the limit become equal. Subtract the largest "
    "one of each row: that changes no weight.",
)
class scores_clamped(nn.Module):
    def __init__(self, n_tokens, d_embed, d_hidden, d_annotation, d_attention):
        super().__init__()
        self.embedding = nn.Embedding(n_tokens, d_embed)
        self.W_s = nn.Linear(d_hidden, d_attention, bias=False)
        self.W_h = nn.Linear(d_annotation, d_attention, bias=False)
        self.v = nn.Linear(d_attention, 1, bias=False)
        self.cell = nn.GRUCell(d_embed + d_annotation, d_hidden)
        self.output = nn.Linear(d_hidden + d_annotation, n_tokens)

    def step(self, y_prev, state, H, mask):
        e = self.v(torch.tanh(self.W_s(state)[:, None] + self.W_h(H)))[:, :, 0]
        p = torch.exp(e.clamp(-60.0, 60.0)) * mask
        alpha = p / (p.sum(dim=1, keepdim=True) + 1e-30)
        context = torch.einsum("bt,btm->bm", alpha, H)
        state = self.cell(torch.cat([self.embedding(y_prev), context], dim=1), state)
        return (self.output(torch.cat([state, context], dim=1)), state, alpha)


edited(
    "alignment_reading",
    "average_place",
    '"reads": (reads + 1).tolist(),',
    '"reads": np.rint(alignment @ np.arange(1, 7)).astype(int).tolist(),',
    says='Your "reads" holds the average place of the weights, rounded; a written word reads where its weight is '
    "largest.",
)


# -------------------------------------------- mistakes that a third collection of answers brought

edited(
    "additive_scores",
    "annotations_piled_up",
    "H @ W_h.T",
    "np.cumsum(H @ W_h.T, axis=0)",
    says="Your annotations pile up: into each score go those before it, too. Each score has one annotation of its own.",
)
edited(
    "attend",
    "context_summed_over_the_width",
    "return alpha, alpha @ H",
    "return alpha, (alpha[:, None] * H).sum(axis=1)",
    says="You add the weighted annotations up over their width; it is over the annotations that they are added up, so "
    "that a vector (m,) is left.",
)


@wrong(
    "alignment_matrix",
    says="All entries of your alignment together sum to 1; each row is divided by a sum of its own.",
)
def divided_by_the_sum_of_all(S, H, W_s, W_h, v):
    scores = np.tanh((S @ W_s.T)[:, None] + H @ W_h.T) @ v
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum()


@wrong(
    "alignment_reading",
    says='Your "reads", "three_times" and "left_out" are counted from 0; columns, like rows, are counted from 1.',
)
def columns_from_zero(student_id):
    weights = planted_alignment(student_id)
    reads = weights.argmax(axis=1)
    times = np.bincount(reads, minlength=6)
    first = int(np.flatnonzero(np.diff(reads) < 0)[0])
    return {
        "reads": reads.tolist(),
        "three_times": int(times.argmax()),
        "left_out": int(times.argmin()),
        "crossing": [first + 1, first + 2],
        "undecided": int(weights.max(axis=1).argmin()) + 1,
    }


edited(
    "alignment_reading",
    "rows_of_the_columns",
    '"reads": (reads + 1).tolist(),',
    '"reads": (alignment.argmax(axis=0) + 1).tolist(),',
    says='Your "reads" goes down the columns and has six numbers: the row in which each column is largest. Asked are '
    "seven: the column in which each row is largest.",
)


edited(
    "alignment_reading",
    "crossing_where_a_word_is_read_again",
    "np.diff(reads) < 0",
    "np.diff(reads) <= 0",
    says='For "crossing" you take the first place where the numbers of "reads" do not go up, as where a word is read '
    "again; asked is the place where they go down.",
)
edited(
    "alignment_reading",
    "undecided_by_column",
    '"undecided": int(alignment.max(axis=1).argmin()) + 1,',
    '"undecided": int(alignment[alignment.max(axis=1).argmin()].argmax()) + 1,',
    says='For "undecided" you name the word that is read, a column; asked is the written word, the row in which no '
    "weight reaches one half.",
)
edited(
    "alignment_reading",
    "three_times_one_too_large",
    '"three_times": int(times.argmax()) + 1,',
    '"three_times": int(times.argmax()) + 2,',
    says='Your "three_times" is too large by one: what has been counted from 1 already is not to be moved on again.',
)


@wrong(
    "alignment_reading",
    says='Two things: your "three_times" is too large by one; and for "left_out" you take the column with the smallest '
    "weight, where the one in which no row has its largest weight is asked for.",
)
def three_times_too_large_and_smallest_weight(student_id):
    weights = planted_alignment(student_id)
    reads = weights.argmax(axis=1)
    times = np.bincount(reads, minlength=6)
    first = int(np.flatnonzero(np.diff(reads) < 0)[0])
    return {
        "reads": (reads + 1).tolist(),
        "three_times": int(times.argmax()) + 2,
        "left_out": int(weights.min(axis=0).argmin()) + 1,
        "crossing": [first + 1, first + 2],
        "undecided": int(weights.max(axis=1).argmin()) + 1,
    }


@wrong(
    "cosine_similarity",
    says="Each of your vectors has its own order of words, so that the counts of different words are multiplied; both "
    "need an entry for the same words in the same order.",
)
def orders_of_their_own(a, b):
    x, y = list(Counter(a.split()).values()), list(Counter(b.split()).values())
    if not x or not y:
        return float(x == y)
    return sum(p * q for p, q in zip(x, y)) / (np.linalg.norm(x) * np.linalg.norm(y))


@wrong(
    "cosine_similarity",
    says="Your vectors have entries for the words of the first text only, so the second vector comes out too short.",
)
def words_of_the_first_or_nothing(a, b):
    x, y = Counter(a.split()), Counter(b.split())
    if not x or not y:
        return float(x == y)
    product = sum(x[word] * y[word] for word in x)
    return product and product / np.sqrt(sum(n * n for n in x.values()) * sum(y[word] ** 2 for word in x))


@wrong(
    "cosine_similarity",
    says="You count a word also where its letters stand inside a longer one, as text.count does; the words are those "
    "of text.split().",
)
def letters_inside_words(a, b):
    words = {*a.split(), *b.split()}
    if not a.split() or not b.split():
        return float(a.split() == b.split())
    x, y = (np.array([text.count(word) for word in words]) for text in (a, b))
    return x @ y / np.sqrt((x @ x) * (y @ y))


@wrong(
    "damerau_levenshtein_similarity",
    says="The first row of your table is 0: characters at the beginning of the second text are inserted for nothing.",
)
def beginning_for_nothing_but_with_an_empty_text(a, b):
    if not a or not b:
        return float(a == b)
    d = np.zeros((len(a) + 1, len(b) + 1))
    d[:, 0] = range(len(a) + 1)
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            d[i, j] = min(d[i - 1, j] + 1, d[i, j - 1] + 1, d[i - 1, j - 1] + (a[i - 1] != b[j - 1]))
            if i > 1 and j > 1 and a[i - 2] == b[j - 1] and a[i - 1] == b[j - 2]:
                d[i, j] = min(d[i, j], d[i - 2, j - 2] + 1)
    return 1 - d[len(a), len(b)] / max(len(a), len(b))


edited(
    "damerau_levenshtein_similarity",
    "exchange_without_asking_for_two",
    "if i > 1 and j > 1 and",
    "if len(a) > 1 and",
    says="Your condition for an exchange does not ask whether two characters have been read of each text (i > 1 and "
    "j > 1): at the beginning an index of -1 or -2 takes characters from the end.",
)


@wrong(
    "AttentionDecoder",
    says="Your cell reads the mean of the annotations, and its new state asks. Here the previous state asks, and the "
    "cell reads the context that comes of it.",
    based_on="AttentionDecoder",
)
class cell_reads_the_mean:
    def step(self, y_prev, state, H, mask):
        share = mask / mask.sum(dim=1, keepdim=True).clamp(min=1)
        mean = torch.einsum("bt,btm->bm", share, H)
        state = self.cell(torch.cat([self.embedding(y_prev), mean], dim=1), state)
        hidden = torch.tanh(self.W_s(state).unsqueeze(1) + self.W_h(H))
        scores = self.v(hidden).squeeze(2).masked_fill(~mask, -torch.inf)
        alpha = scores.softmax(dim=1).masked_fill(~mask, 0.0)
        context = torch.einsum("bt,btm->bm", alpha, H)
        return self.output(torch.cat([state, context], dim=1)), state, alpha
