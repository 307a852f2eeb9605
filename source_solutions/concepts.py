"""Mistakes that people make wherever attention is computed; the catalogues of all sets can use what stands here.

A concept is a step of attention that is done in another way, and the sentence for whoever does it so. A catalogue
applies all of them to an exercise whose reference calls the attention of exercise 5 of problem set 2. This text is
read in front of each catalogue; the chapters "Self-attention" and "Multi-head attention" tell how it should be.
"""

from autograder.catalogue import edited

RIGHT = {  # the steps of attention, each in the names of those before it
    "scores": "Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-1])",
    "masked": "s if mask is None else np.where(mask, s, -np.inf)",
    "powers": "np.exp(s - np.maximum(s.max(axis=-1, keepdims=True), np.finfo(float).min))",
    "weights": "e / np.maximum(e.sum(axis=-1, keepdims=True), 1e-300)",
    "result": "w @ V, w",
}
UP_TO_ITS_PLACE = "np.where(np.tri(*s.shape[-2:], dtype=bool) & (mask is None or mask), s, -np.inf)"
CONCEPTS = {
    "scaled_by_d_v": (
        "Your scale is the root of the width of the values; it should come from the width of the keys.",
        {"scores": "Q @ np.swapaxes(K, -1, -2) / np.sqrt(V.shape[-1])"},
    ),
    "scaled_by_keys": (
        "Your scale is the root of the number of keys; it should come from their width.",
        {"scores": "Q @ np.swapaxes(K, -1, -2) / np.sqrt(K.shape[-2])"},
    ),
    "divided_by_d_k": (
        "Your scores are divided by the width of the keys; the scale is smaller than that: its square root.",
        {"scores": "Q @ np.swapaxes(K, -1, -2) / K.shape[-1]"},
    ),
    "multiplied_by_the_root": (
        "Your products are multiplied by the square root of the width; it should make them smaller, not larger.",
        {"scores": "Q @ np.swapaxes(K, -1, -2) * np.sqrt(K.shape[-1])"},
    ),
    "cosines": (
        "You bring queries and keys to length 1 first; the dot product as it is also counts how long they are.",
        {
            "scores": "(Q / np.linalg.norm(Q, axis=-1, keepdims=True)) @ np.swapaxes("
            "K / np.linalg.norm(K, axis=-1, keepdims=True), -1, -2) / np.sqrt(K.shape[-1])"
        },
    ),
    "reshape_for_transpose": (
        "You reshape the keys where they should be transposed. Reshaping keeps the order of the numbers and mixes "
        "the keys up.",
        {"scores": "Q @ K.reshape(*K.shape[:-2], K.shape[-1], K.shape[-2]) / np.sqrt(K.shape[-1])"},
    ),
    "all_axes_transposed": (
        "It works for a single sequence but not with batch axes: `.T` reverses all axes. Count axes from the end.",
        {"scores": "Q @ K.T / np.sqrt(K.shape[-1])"},
    ),
    "always_causal": (
        "Your queries see only the keys up to their own place; nothing here says that they may not look ahead.",
        {"masked": UP_TO_ITS_PLACE},
    ),
    "causal_where_square": (
        "Where there are as many keys as queries, your queries see only the keys up to their own place; nothing here "
        "says that they may not look ahead.",
        {"masked": f"{UP_TO_ITS_PLACE} if mask is None and s.shape[-1] == s.shape[-2] else {RIGHT['masked']}"},
    ),
    "not_itself": (
        "Your queries do not see the key at their own place; no key is left out here.",
        {"masked": "np.where(~np.eye(*s.shape[-2:], dtype=bool) & (mask is None or mask), s, -np.inf)"},
    ),
    "scores_cut_off": (
        "You cut large scores off before exp, so that scores beyond the limit become equal. Subtract the largest one "
        "of the row: that changes no weight.",
        {"powers": "np.exp(np.clip(s, -50, 50))"},
    ),
    "no_maximum": (
        "Large scores overflow in your exp; subtract the largest score of the row first, which changes no weight.",
        {"powers": "np.exp(s)", "weights": "e / e.sum(axis=-1, keepdims=True)"},
    ),
    "one_maximum": (
        "You subtract one largest score from the whole array; a row with much smaller scores then loses all its "
        "weights. Every row has a largest score of its own.",
        {"powers": "np.exp(s - s.max())", "weights": "e / e.sum(axis=-1, keepdims=True)"},
    ),
    "axis_one": (
        "Where there is a batch, your softmax runs over axis 1; the keys' axis is the last one. Count from the end.",
        {"powers": "np.exp(s - s.max(axis=1, keepdims=True))", "weights": "e / e.sum(axis=1, keepdims=True)"},
    ),
    "over_everything": (
        "All weights of your map together sum to 1; every query, that is every row, needs a softmax of its own.",
        {"powers": "np.exp(s - s.max())", "weights": "e / e.sum()"},
    ),
    "no_exponential": (
        "You divide each score by the sum of its row; softmax applies the exponential function first.",
        {"powers": "s", "weights": "e / e.sum(axis=-1, keepdims=True)"},
    ),
    "hard": (
        "Your queries take the value of the best key alone; the output is the weighted average of all values.",
        {"weights": "np.eye(s.shape[-1])[s.argmax(axis=-1)]"},
    ),
    "weights_transposed": (
        "The weights you return are transposed: the rows should belong to the queries, the columns to the keys.",
        {"result": "w @ V, np.swapaxes(w, -1, -2)"},
    ),
    "weights_first": (
        "You return the weights first; the order is output, weights.",
        {"result": "w, w @ V"},
    ),
    "scores_returned": (
        "Your output is right, but the second value you return holds the scores from before the softmax.",
        {"result": "w @ V, s"},
    ),
    "squeezed": (
        "np.squeeze removes every axis of size 1, also that of a single sequence, a single token or a width of 1.",
        {"result": "np.squeeze(w @ V), np.squeeze(w)"},
    ),
}


def attention_with(**steps: str) -> str:
    """The text of a function of Q, K, V and a mask: attention with these steps in place of the right ones."""
    step = {**RIGHT, **steps}
    names = zip(["s", "s", "e", "w"], ["scores", "masked", "powers", "weights"], strict=True)
    line = " ".join(f"for {name} in [{step[part]}]" for name, part in names)
    return f"(lambda Q, K, V, mask=None: [({step['result']}) {line}][0])"


def attention_mistakes(exercise: str, prefix: str, *but: str, called: str = "scaled_dot_product_attention") -> None:
    """Wrong variants of an exercise whose reference calls the attention `called`: one for each concept not in `but`."""
    for name, (says, steps) in CONCEPTS.items():
        if name not in but:
            edited(exercise, f"{prefix}_{name}", f"{called}(", f"{attention_with(**steps)}(", says=says)
