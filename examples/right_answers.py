"""Right answers to ps2 in three styles, and their parts, from which the example class makes wrong ones."""

WORKSHEET = """\
Q, K, V = X @ W_Q, X @ W_K, X @ W_V
scores = Q @ K.T / np.sqrt(2)
weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
self_attention_answers = {
    "Q": Q, "K": K, "V": V, "scores": scores, "weights": weights,
    "output": weights @ V, "dominant": [1 + row.argmax() for row in weights],
}"""
CROSS_WORKSHEET = """\
Q, K, V = X_q @ W_Q, X_kv @ W_K, X_kv @ W_V
scores = Q @ K.T / np.sqrt(3)
weights = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
cross_attention_answers = {"Q": Q, "K": K, "V": V, "scores": scores, "weights": weights, "output": weights @ V}"""
ATTENTION = """\
scores = Q @ K.swapaxes(-1, -2) / np.sqrt(K.shape[-1])
allowed = np.ones_like(scores, dtype=bool) if mask is None else np.broadcast_to(mask, scores.shape)
top = np.where(allowed, scores, -1e300).max(axis=-1, keepdims=True)
e = np.where(allowed, np.exp(np.where(allowed, scores - top, 0.0)), 0.0)
total = e.sum(axis=-1, keepdims=True)
weights = e / np.where(total == 0, 1.0, total)
return weights @ V, weights"""

RIGHT = {
    "self-attention-worksheet": WORKSHEET,
    "cross-attention-worksheet": CROSS_WORKSHEET,
    "argmax-attention": "return V[np.argmax(K @ q)]",
    "gradient-choice": 'answer_gradient = "c"',
    "scaled-dot-product-attention": ATTENTION,
    "self-attention": "return scaled_dot_product_attention(X @ W_Q, X @ W_K, X @ W_V)",
    "self-attention-columns": (
        "output, weights = scaled_dot_product_attention((W_Q @ X).T, (W_K @ X).T, (W_V @ X).T)\n"
        "return output.T, weights"
    ),
    "cross-attention": "return scaled_dot_product_attention(X_q @ W_Q, X_kv @ W_K, X_kv @ W_V)",
    "attention-multiplications": "return 2 * L**2 * D",
    "gradient-why": (
        "Moving a key a little does not change which key wins, so the output stays the same and the gradient of the "
        "keys is zero. W_Q and W_K therefore get no gradient and are never learnt."
    ),
    "why-scale": (
        "The variance of the dot product grows like d_k; dividing by the square root brings it back to 1. Without it "
        "the softmax would be almost one-hot and its gradients would vanish."
    ),
    "why-softmax": (
        "Its weights are positive and sum to one. It is differentiable with gradients that are not zero, so the "
        "projections can learn, unlike with argmax."
    ),
    "why-map": (
        "Entry (i, j) says how much output i takes from value j. It does not show how large the values are, so a "
        "large weight may bring little."
    ),
}

EINSUM = {
    "self-attention-worksheet": WORKSHEET.replace(
        "scores = Q @ K.T / np.sqrt(2)", 'scores = np.einsum("qd,kd->qk", Q, K) / 2**0.5'
    ),
    "argmax-attention": (
        'best = max(range(len(K)), key=lambda i: float(np.einsum("d,d->", K[i], q)))\nreturn 1.0 * V[best]'
    ),
    "scaled-dot-product-attention": """\
scores = np.einsum("...qd,...kd->...qk", Q, K) * K.shape[-1] ** -0.5
if mask is not None:
    scores = scores + np.where(mask, 0.0, -np.inf)
with np.errstate(invalid="ignore"):
    weights = np.exp(scores - scores.max(axis=-1, keepdims=True))
    weights = weights / weights.sum(axis=-1, keepdims=True)
weights = np.nan_to_num(weights)
return np.einsum("...qk,...kv->...qv", weights, V), weights""",
    "self-attention": "return cross_attention_by_hand(X, X, W_Q, W_K, W_V)",
    "self-attention-columns": (
        "Q, K, V = W_Q @ X, W_K @ X, W_V @ X\n"
        'scores = np.einsum("dq,dk->qk", Q, K) / np.sqrt(len(K))\n'
        "weights = np.exp(scores - scores.max(1, keepdims=True))\n"
        "weights /= weights.sum(1, keepdims=True)\n"
        "return V @ weights.T, weights"
    ),
    "cross-attention": "return cross_attention_by_hand(X_q, X_kv, W_Q, W_K, W_V)",
}

LOOPS = {
    "self-attention-worksheet": WORKSHEET.replace(
        '"Q": Q, "K": K, "V": V, "scores": scores, "weights": weights,\n    "output": weights @ V',
        '"Q": Q.tolist(), "K": K.tolist(), "V": V.tolist(), "scores": scores.round(3).tolist(),\n'
        '    "weights": weights.round(3).tolist(), "output": (weights @ V).round(3).tolist()',
    ),
    "argmax-attention": """\
best, best_score = 0, None
for i in range(K.shape[0]):
    score = 0.0
    for a, b in zip(K[i], q):
        score += a * b
    if best_score is None or score > best_score:
        best, best_score = i, score
return np.array(V[best])""",
    "scaled-dot-product-attention": """\
if Q.ndim > 2:
    masks = [None] * len(Q)
    if mask is not None:
        full = np.broadcast_to(mask, (*Q.shape[:-1], K.shape[-2]))
        masks = [full[i] for i in range(len(Q))]
    pairs = [scaled_dot_product_attention(Q[i], K[i], V[i], masks[i]) for i in range(len(Q))]
    return np.stack([p[0] for p in pairs]), np.stack([p[1] for p in pairs])
if mask is not None:
    mask = np.broadcast_to(mask, (Q.shape[0], K.shape[0]))
weights = np.zeros((Q.shape[0], K.shape[0]), dtype=Q.dtype)
for i in range(Q.shape[0]):
    seen = [j for j in range(K.shape[0]) if mask is None or mask[i, j]]
    if not seen:
        continue
    s = np.array([Q[i] @ K[j] for j in seen]) / np.sqrt(K.shape[1])
    e = np.exp(s - max(s))
    weights[i, seen] = e / sum(e)
return weights @ V, weights""",
    "attention-multiplications": """\
count = 0
for query in range(L):
    for key in range(L):
        count += 2 * D
return float(count)""",
}
