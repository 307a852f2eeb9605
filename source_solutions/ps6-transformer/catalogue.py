# ruff: noqa: B905
"""Right variants and misconceptions of ps6-transformer.

Each misconception carries the sentence that its author reads in the feedback.
"""

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import (
        N_THINGS,
        N_WORDS,
        TRAIN_LABELS,
        TRAIN_TEXTS,
        VAL_LABELS,
        VAL_TEXTS,
        DecoderLayer,
        EncoderLayer,
        MultiHeadAttention,
        Reader,
        ReviewClassifier,
    )

# ---------------------------------------------------------------------------------- exercise 1: EncoderLayer

LOOK = "x = x + self.attention(seen, seen, mask)[0]"
THINK = "return x + self.linear2(self.linear1(self.norm2(x)).relu())"


@wrong(
    "EncoderLayer",
    says="Your layer is post-norm: it normalises after each sum. Pre-norm normalises what a part reads, and leaves the "
    "sums alone.",
    based_on="EncoderLayer",
)
class encoder_post_norm:
    def forward(self, x, mask=None):
        x = self.norm1(x + self.attention(x, x, mask)[0])
        return self.norm2(x + self.linear2(self.linear1(x).relu()))


edited(
    "EncoderLayer",
    "encoder_no_detour_around_attention",
    LOOK,
    "x = self.attention(seen, seen, mask)[0]",
    says="The residual connection around the attention is missing: its answer is added to x and does not take its "
    "place.",
)
edited(
    "EncoderLayer",
    "encoder_no_detour_around_thinking",
    THINK,
    "return self.linear2(self.linear1(self.norm2(x)).relu())",
    says="The residual connection around the feed-forward network is missing: its answer is added to x and does not "
    "take its place.",
)


@wrong(
    "EncoderLayer",
    says="Both residual connections are missing: what a part answers is added to the stream and does not take its "
    "place.",
    based_on="EncoderLayer",
)
class encoder_no_detours:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        x = self.attention(seen, seen, mask)[0]
        return self.linear2(self.linear1(self.norm2(x)).relu())


edited(
    "EncoderLayer",
    "encoder_detour_from_the_normalised",
    LOOK,
    "x = seen + self.attention(seen, seen, mask)[0]",
    says="Your residual connection carries norm1(x); the stream itself goes on as it is, x + ..., and only the "
    "attention reads the norm.",
)


@wrong(
    "EncoderLayer",
    says="Around the feed-forward network your residual connection carries norm2(x); it should carry x as it is.",
    based_on="EncoderLayer",
)
class encoder_thinking_detour_from_the_normalised:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        x = x + self.attention(seen, seen, mask)[0]
        x = self.norm2(x)
        return x + self.linear2(self.linear1(x).relu())


edited(
    "EncoderLayer",
    "encoder_without_relu",
    ".relu())",
    ")",
    says="Between linear1 and linear2 there is no ReLU, so the two together are just one linear layer.",
)
edited(
    "EncoderLayer",
    "encoder_gelu",
    "self.linear2(self.linear1(self.norm2(x)).relu())",
    "self.linear2(nn.functional.gelu(self.linear1(self.norm2(x))))",
    says="You use GELU between the two linear layers; this set asks for ReLU.",
)
edited(
    "EncoderLayer",
    "encoder_relu_last",
    "self.linear2(self.linear1(self.norm2(x)).relu())",
    "self.linear2(self.linear1(self.norm2(x))).relu()",
    says="Your ReLU comes after linear2; it belongs between the two linear layers.",
)
edited(
    "EncoderLayer",
    "encoder_two_relus",
    "self.linear2(self.linear1(self.norm2(x)).relu())",
    "self.linear2(self.linear1(self.norm2(x)).relu()).relu()",
    says="There is a second ReLU after linear2; the network must be able to subtract, too.",
)
edited(
    "EncoderLayer",
    "encoder_attention_not_normalised",
    "seen = self.norm1(x)",
    "seen = x",
    says="Your attention reads x itself; norm1 is there but not used.",
)
edited(
    "EncoderLayer",
    "encoder_thinking_not_normalised",
    "self.norm2(x)",
    "x",
    says="Your feed-forward network reads x itself; norm2 is there but not used.",
)
edited(
    "EncoderLayer",
    "encoder_only_queries_normalised",
    "self.attention(seen, seen, mask)",
    "self.attention(seen, x, mask)",
    says="Only your queries are normalised; keys and values come from norm1(x), too.",
)
edited(
    "EncoderLayer",
    "encoder_only_keys_normalised",
    "self.attention(seen, seen, mask)",
    "self.attention(x, seen, mask)",
    says="Your queries come from x itself; they come from norm1(x) like keys and values.",
)
edited(
    "EncoderLayer",
    "encoder_one_norm_used_twice",
    "self.norm2(x)",
    "self.norm1(x)",
    says="You use norm1 in both places; each place has a norm with numbers of its own.",
)
edited(
    "EncoderLayer",
    "encoder_one_norm_under_two_names",
    "self.norm2 = nn.LayerNorm(d_model)",
    "self.norm2 = self.norm1",
    says="norm1 and norm2 are one and the same layer under two names; make two, each with numbers of its own.",
)


@wrong("EncoderLayer", says="norm1 and norm2 are exchanged: norm1 belongs to the attention.", based_on="EncoderLayer")
class encoder_norms_exchanged:
    def forward(self, x, mask=None):
        seen = self.norm2(x)
        x = x + self.attention(seen, seen, mask)[0]
        return x + self.linear2(self.linear1(self.norm1(x)).relu())


edited(
    "EncoderLayer",
    "encoder_mask_ignored",
    "self.attention(seen, seen, mask)",
    "self.attention(seen, seen)",
    says="Your result does not depend on the mask: hand it on to the attention.",
)
edited(
    "EncoderLayer",
    "encoder_mask_inverted",
    "self.attention(seen, seen, mask)",
    "self.attention(seen, seen, None if mask is None else ~mask)",
    says="Your mask works the other way round. The given attention takes it as it is: True = may attend.",
)
edited(
    "EncoderLayer",
    "encoder_always_causal",
    "self.attention(seen, seen, mask)",
    "self.attention(seen, seen, torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).tril() if mask is None else mask)",
    says="Without a mask your tokens see only what comes before them; None means that everybody sees everything.",
)
edited(
    "EncoderLayer",
    "encoder_norm_at_the_end",
    THINK,
    THINK.replace("return ", "return self.norm2(") + ")",
    says="You normalise once more at the end; the layer returns its stream as it is.",
)


@wrong(
    "EncoderLayer",
    says="Your feed-forward network reads what came in; it should read the stream after the attention has added to it.",
    based_on="EncoderLayer",
)
class encoder_parallel_parts:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        return x + self.attention(seen, seen, mask)[0] + self.linear2(self.linear1(self.norm2(x)).relu())


@wrong("EncoderLayer", says="You think first and look afterwards; the attention comes first.", based_on="EncoderLayer")
class encoder_thinking_first:
    def forward(self, x, mask=None):
        x = x + self.linear2(self.linear1(self.norm2(x)).relu())
        seen = self.norm1(x)
        return x + self.attention(seen, seen, mask)[0]


@wrong(
    "EncoderLayer",
    says="The answer of the attention goes into the feed-forward network only; it is first added to the "
    "stream x, which then goes on.",
    based_on="EncoderLayer",
)
class encoder_thinking_reads_the_attention_alone:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        found = self.attention(seen, seen, mask)[0]
        return x + self.linear2(self.linear1(self.norm2(found)).relu())


@wrong(
    "EncoderLayer",
    says="You return the attention's weights, too; only the tokens are asked for.",
    based_on="EncoderLayer",
)
class encoder_returns_the_weights_too:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        found, weights = self.attention(seen, seen, mask)
        x = x + found
        return x + self.linear2(self.linear1(self.norm2(x)).relu()), weights


edited(
    "EncoderLayer",
    "encoder_without_bias",
    "self.linear2 = nn.Linear(d_ff, d_model)",
    "self.linear2 = nn.Linear(d_ff, d_model, bias=False)",
    says="linear2 has no bias; only the attention's layers go without one.",
)
edited(
    "EncoderLayer",
    "encoder_linear1_without_bias",
    "self.linear1 = nn.Linear(d_model, d_ff)",
    "self.linear1 = nn.Linear(d_model, d_ff, bias=False)",
    says="linear1 has no bias; only the attention's layers go without one.",
)
edited(
    "EncoderLayer",
    "encoder_other_eps",
    "self.norm1 = nn.LayerNorm(d_model)",
    "self.norm1 = nn.LayerNorm(d_model, eps=1e-12)",
    says="Your norm1 has an eps of its own, which shows where tokens are small; keep the one that PyTorch sets.",
)


@wrong(
    "EncoderLayer",
    says="x += ... writes into the tensor that was handed in; write x = x + ...",
    based_on="EncoderLayer",
)
class encoder_changes_its_input:
    def forward(self, x, mask=None):
        seen = self.norm1(x)
        with torch.no_grad():
            x += self.attention(seen, seen, mask)[0]
        return x + self.linear2(self.linear1(self.norm2(x)).relu())


edited(
    "EncoderLayer",
    "encoder_attention_without_gradient",
    LOOK,
    "x = x + self.attention(seen, seen, mask)[0].detach()",
    says="Your attention is cut off from the gradient (detach, .data or no_grad), so its numbers can never learn.",
)
edited(
    "EncoderLayer",
    "encoder_with_a_norm_too_many",
    "self.attention = MultiHeadAttention(d_model, n_heads)",
    "self.attention = MultiHeadAttention(d_model, n_heads); self.final_norm = nn.LayerNorm(d_model)",
    says="Your layer has parameters beside its parts: something that learns and that was not asked for.",
)
edited(
    "EncoderLayer",
    "encoder_dropout",
    THINK,
    "return x + nn.functional.dropout(self.linear2(self.linear1(self.norm2(x)).relu()), 0.1, self.training)",
    says="There is dropout in your layer, so that it answers differently every time; this set has none.",
)
edited(
    "EncoderLayer",
    "encoder_always_one_head",
    "MultiHeadAttention(d_model, n_heads)",
    "MultiHeadAttention(d_model, 1)",
    says="Your attention has one head, whatever n_heads is.",
)
edited(
    "EncoderLayer",
    "encoder_scaled_sum",
    LOOK,
    "x = (x + self.attention(seen, seen, mask)[0]) / 2**0.5",
    says="You divide the sum of the stream and the attention's answer; it is a plain sum.",
)


@wrong(
    "EncoderLayer",
    says="All sequences of the batch get the mask of the first one; a mask may hold one for each.",
    based_on="EncoderLayer",
)
class encoder_first_mask_for_all:
    def forward(self, x, mask=None):
        if mask is not None and mask.dim() == 4:
            mask = mask[:1]
        z = self.norm1(x)
        attended, _ = self.attention(z, z, mask)
        x = x + attended
        return x + self.linear2(torch.relu(self.linear1(self.norm2(x))))


@wrong(
    "EncoderLayer",
    says="You combine a given mask with the causal one; the mask is used as it is, and says itself who may look where.",
    based_on="EncoderLayer",
)
class encoder_given_mask_made_causal:
    def forward(self, x, mask=None):
        if mask is not None:
            T = x.shape[1]
            causal = torch.ones(T, T, dtype=torch.bool).tril()
            mask = mask & causal
        h = self.norm1(x)
        x = x + self.attention(h, h, mask)[0]
        h = self.norm2(x)
        return x + self.linear2(nn.functional.relu(self.linear1(h)))


@wrong(
    "EncoderLayer",
    says="Tokens that may attend to nothing come out as zeros in your layer; the attention gives zeros for them, "
    "and they keep their place in the stream.",
    based_on="EncoderLayer",
)
class encoder_tokens_without_keys_zeroed:
    def forward(self, x, mask=None):
        normalised = self.norm1(x)
        x = x + self.attention(normalised, normalised, mask)[0]
        x = x + self.linear2(torch.relu(self.linear1(self.norm2(x))))
        if mask is not None and mask.dim() == 4:
            alive = mask.any(dim=-1).any(dim=1)
            x = x * alive[..., None]
        return x


@wrong(
    "EncoderLayer",
    says="Both of your residual connections carry the normalised tokens; the stream itself goes on as it is, and only "
    "the parts"
    " read the norms.",
    based_on="EncoderLayer",
)
class encoder_both_detours_from_the_normalised:
    def forward(self, x, mask=None):
        x = self.norm1(x)
        x = x + self.attention(x, x, mask)[0]
        x = self.norm2(x)
        return x + self.linear2(torch.relu(self.linear1(x)))


@wrong(
    "EncoderLayer",
    says="Your norms have an eps of their own, 1e-3, which shows where tokens are small; keep the one that PyTorch"
    " sets.",
    based_on="EncoderLayer",
)
class encoder_eps_of_another_library:
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model, eps=0.001)
        self.norm2 = nn.LayerNorm(d_model, eps=0.001)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)


@wrong(
    "EncoderLayer",
    says="Two things: you use norm1 in both places, where each has a norm with numbers of its own; and you use "
    "GELU, where this set asks for ReLU.",
    based_on="EncoderLayer",
)
class encoder_norm1_twice_and_gelu:
    def forward(self, x, mask=None):
        z = self.norm1(x)
        x = x + self.attention(z, z, mask)[0]
        z = self.norm1(x)
        return x + self.linear2(nn.functional.gelu(self.linear1(z)))


@right("EncoderLayer")
class EncoderWithFunctions(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.linear2 = torch.nn.Linear(in_features=d_ff, out_features=d_model)
        self.linear1 = torch.nn.Linear(in_features=d_model, out_features=d_ff)
        self.norm2 = torch.nn.LayerNorm(normalized_shape=[d_model])
        self.norm1 = torch.nn.LayerNorm(normalized_shape=[d_model])
        self.attention = MultiHeadAttention(d_model=d_model, n_heads=n_heads)
        self.relu = nn.ReLU()
        self.dropout = nn.Dropout(0.0)

    def forward(self, x, mask=None):
        normalised = nn.functional.layer_norm(x, x.shape[-1:], self.norm1.weight, self.norm1.bias)
        output, _ = self.attention(x_q=normalised, x_kv=normalised, mask=mask)
        x = torch.add(x, self.dropout(output))
        hidden = self.relu(self.linear1(self.norm2(x)))
        return x + self.dropout(self.linear2(hidden))


@right("EncoderLayer")
class EncoderWithPartsAsMethods(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.norm1, self.norm2 = (nn.LayerNorm(d_model) for _ in range(2))
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.sizes = (d_model, n_heads, d_ff)

    def look(self, x, mask):
        return self.attention(x, x, mask)[0]

    def think(self, x):
        return self.linear2(torch.clamp(self.linear1(x), min=0))

    def forward(self, x, mask=None):
        stream = torch.stack([x, self.look(self.norm1(x), mask)]).sum(dim=0)
        return stream + self.think(self.norm2(stream))


@right("EncoderLayer")
class EncoderThroughTheLibrary(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.n_heads = n_heads
        self.attention = MultiHeadAttention(d_model, n_heads)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def forward(self, x, mask=None):
        n = self.norm1(x)
        B, T, d = n.shape
        q, k, v = (
            W(n).view(B, T, self.n_heads, d // self.n_heads).transpose(1, 2)
            for W in (self.attention.W_Q, self.attention.W_K, self.attention.W_V)
        )
        scores = q @ k.transpose(2, 3) / (d // self.n_heads) ** 0.5
        if mask is not None:
            scores = scores.masked_fill(~mask, -1e9)
        weights = scores.softmax(dim=-1)
        if mask is not None:
            weights = weights * mask
        z = (weights @ v).transpose(1, 2).reshape(B, T, d)
        x = x + self.attention.W_O(z)
        return self.linear2(nn.functional.relu(self.linear1(self.norm2(x)))) + x


# ---------------------------------------------------------------------------------- exercise 2: DecoderLayer

SELF = "y = y + self.self_attention(seen, seen, self_mask)[0]"
CROSS = "y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]"
THEN = "return y + self.linear2(self.linear1(self.norm3(y)).relu())"


@wrong(
    "DecoderLayer",
    says="Your layer is post-norm: it normalises after each sum. Pre-norm normalises what a part reads, and leaves the "
    "sums alone.",
    based_on="DecoderLayer",
)
class decoder_post_norm:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        y = self.norm1(y + self.self_attention(y, y, self_mask)[0])
        y = self.norm2(y + self.cross_attention(y, memory, cross_mask)[0])
        return self.norm3(y + self.linear2(self.linear1(y).relu()))


edited(
    "DecoderLayer",
    "decoder_memory_normalised",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(self.norm2(y), self.norm2(memory), cross_mask)",
    says="You normalise the memory with norm2; it comes normalised from the encoder and is used as it is.",
)
edited(
    "DecoderLayer",
    "decoder_memory_normalised_by_norm1",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(self.norm2(y), self.norm1(memory), cross_mask)",
    says="You normalise the memory with norm1; it comes normalised from the encoder and is used as it is.",
)
edited(
    "DecoderLayer",
    "decoder_memory_only_normalised",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(y, self.norm2(memory), cross_mask)",
    says="norm2 stands before the wrong side: the written tokens are normalised, the memory is used as it is.",
)
edited(
    "DecoderLayer",
    "decoder_memory_asks",
    CROSS,
    "y = y + self.cross_attention(memory, self.norm2(y), None)[0][:, : y.shape[1]]",
    says="In your cross-attention the memory asks and the written tokens answer; it is the other way round.",
)
edited(
    "DecoderLayer",
    "decoder_queries_and_memory_exchanged",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(memory, self.norm2(y), cross_mask)",
    says="In your cross-attention queries and memory are exchanged: the written tokens ask (first argument), "
    "the memory answers (second).",
)


@wrong(
    "DecoderLayer",
    says="Your cross-attention looks at the written tokens once more; keys and values come from the memory.",
    based_on="DecoderLayer",
)
class decoder_self_attention_twice:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, self_mask)[0]
        again = self.norm2(y)
        y = y + self.cross_attention(again, again, self_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_self_attention_over_the_memory",
    SELF,
    "y = y + self.self_attention(seen, memory, cross_mask)[0]",
    says="Your self-attention looks into the memory; first the written tokens look at each other.",
)


@wrong(
    "DecoderLayer",
    says="The masks are exchanged: self_mask belongs to the self-attention, cross_mask to the cross-attention.",
    based_on="DecoderLayer",
)
class decoder_masks_exchanged:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, cross_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, self_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_self_mask_ignored",
    "self.self_attention(seen, seen, self_mask)",
    "self.self_attention(seen, seen)",
    says="Your result does not depend on self_mask: hand it on to the self-attention.",
)
edited(
    "DecoderLayer",
    "decoder_cross_mask_ignored",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(self.norm2(y), memory)",
    says="Your result does not depend on cross_mask: hand it on to the cross-attention.",
)


@wrong(
    "DecoderLayer", says="Your result depends on neither mask: hand each on to its attention.", based_on="DecoderLayer"
)
class decoder_both_masks_ignored:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen)[0]
        y = y + self.cross_attention(self.norm2(y), memory)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_self_mask_inverted",
    "self.self_attention(seen, seen, self_mask)",
    "self.self_attention(seen, seen, None if self_mask is None else ~self_mask)",
    says="Your self_mask works the other way round. The given attention takes it as it is: True = may attend.",
)
edited(
    "DecoderLayer",
    "decoder_cross_mask_inverted",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(self.norm2(y), memory, None if cross_mask is None else ~cross_mask)",
    says="Your cross_mask works the other way round. The given attention takes it as it is: True = may attend.",
)


@wrong(
    "DecoderLayer",
    says="Both masks work the other way round. The given attention takes them as they are: True = may attend.",
    based_on="DecoderLayer",
)
class decoder_both_masks_inverted:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        self_mask, cross_mask = (None if m is None else ~m for m in (self_mask, cross_mask))
        y = y + self.self_attention(seen, seen, self_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


@wrong(
    "DecoderLayer",
    says="Without self_mask your tokens see only what comes before them; the causal mask is not built in, and "
    "None means that everybody sees everything.",
    based_on="DecoderLayer",
)
class decoder_always_causal:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        if self_mask is None:
            self_mask = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril()
        y = y + self.self_attention(seen, seen, self_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


@wrong(
    "DecoderLayer",
    says="You look into the memory first; the written tokens look at each other before that.",
    based_on="DecoderLayer",
)
class decoder_cross_first:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, self_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_no_detour_around_self_attention",
    SELF,
    "y = self.self_attention(seen, seen, self_mask)[0]",
    says="The residual connection around the self-attention is missing: its answer is added to y and does not take "
    "its place.",
)
edited(
    "DecoderLayer",
    "decoder_no_detour_around_cross_attention",
    CROSS,
    "y = self.cross_attention(self.norm2(y), memory, cross_mask)[0]",
    says="The residual connection around the cross-attention is missing: its answer is added to y and does not take "
    "its place.",
)
edited(
    "DecoderLayer",
    "decoder_no_detour_around_thinking",
    THEN,
    "return self.linear2(self.linear1(self.norm3(y)).relu())",
    says="The residual connection around the feed-forward network is missing: its answer is added to y and does not "
    "take its place.",
)


@wrong(
    "DecoderLayer",
    says="All three residual connections are missing: what a part answers is added to the stream and does not take "
    "its place.",
    based_on="DecoderLayer",
)
class decoder_no_detours:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = self.self_attention(seen, seen, self_mask)[0]
        y = self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_detour_from_the_normalised",
    SELF,
    "y = seen + self.self_attention(seen, seen, self_mask)[0]",
    says="Around the self-attention your residual connection carries norm1(y); the stream itself goes on as it is.",
)


@wrong(
    "DecoderLayer",
    says="You add what was found to the memory; it is added to the written tokens.",
    based_on="DecoderLayer",
)
class decoder_memory_on_the_detour:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, self_mask)[0]
        found = self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        y = found + memory[:, : y.shape[1]] if memory.shape[1] >= y.shape[1] else found + memory.mean(1, True)
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


@wrong(
    "DecoderLayer",
    says="Your cross-attention asks with the tokens as they came in; it should ask with the stream after the "
    "self-attention has added to it.",
    based_on="DecoderLayer",
)
class decoder_parallel_attentions:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = (
            y
            + self.self_attention(seen, seen, self_mask)[0]
            + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        )
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_without_relu",
    ".relu())",
    ")",
    says="Between linear1 and linear2 there is no ReLU, so the two together are just one linear layer.",
)
edited(
    "DecoderLayer",
    "decoder_gelu",
    "self.linear2(self.linear1(self.norm3(y)).relu())",
    "self.linear2(nn.functional.gelu(self.linear1(self.norm3(y))))",
    says="You use GELU between the two linear layers; this set asks for ReLU.",
)
edited(
    "DecoderLayer",
    "decoder_without_thinking",
    THEN,
    "return y",
    says="The feed-forward network is there but not used.",
)
edited(
    "DecoderLayer",
    "decoder_self_attention_not_normalised",
    "seen = self.norm1(y)",
    "seen = y",
    says="Your self-attention reads y itself; norm1 is there but not used.",
)
edited(
    "DecoderLayer",
    "decoder_cross_attention_not_normalised",
    "self.norm2(y)",
    "y",
    says="Your cross-attention asks with y itself; norm2 is there but not used.",
)
edited(
    "DecoderLayer",
    "decoder_thinking_not_normalised",
    "self.norm3(y)",
    "y",
    says="Your feed-forward network reads y itself; norm3 is there but not used.",
)
edited(
    "DecoderLayer",
    "decoder_norm2_used_twice",
    "self.norm3(y)",
    "self.norm2(y)",
    says="You use norm2 before the feed-forward network, too; norm3 belongs there.",
)


@wrong(
    "DecoderLayer",
    says="You use norm1 in all three places; each place has a norm with numbers of its own.",
    based_on="DecoderLayer",
)
class decoder_norm1_everywhere:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, self_mask)[0]
        y = y + self.cross_attention(self.norm1(y), memory, cross_mask)[0]
        return y + self.linear2(self.linear1(self.norm1(y)).relu())


edited(
    "DecoderLayer",
    "decoder_norm_shared",
    "self.norm3 = nn.LayerNorm(d_model)",
    "self.norm3 = self.norm2",
    says="norm2 and norm3 are one and the same layer under two names; make three, each with numbers of its own.",
)


@wrong(
    "DecoderLayer",
    says="norm2 and norm3 are exchanged: norm2 belongs to the cross-attention, norm3 to the feed-forward network.",
    based_on="DecoderLayer",
)
class decoder_norms_of_cross_and_thinking_exchanged:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        y = y + self.self_attention(seen, seen, self_mask)[0]
        y = y + self.cross_attention(self.norm3(y), memory, cross_mask)[0]
        return y + self.linear2(self.linear1(self.norm2(y)).relu())


edited(
    "DecoderLayer",
    "decoder_one_attention_for_both",
    "self.cross_attention = MultiHeadAttention(d_model, n_heads)",
    "self.cross_attention = self.self_attention",
    says="self_attention and cross_attention are one and the same layer under two names; make two.",
)
edited(
    "DecoderLayer",
    "decoder_self_attention_used_for_the_memory",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.self_attention(self.norm2(y), memory, cross_mask)",
    says="You look into the memory with self_attention; cross_attention is there but not used.",
)
edited(
    "DecoderLayer",
    "decoder_memory_without_gradient",
    "self.cross_attention(self.norm2(y), memory, cross_mask)",
    "self.cross_attention(self.norm2(y), memory.detach(), cross_mask)",
    says="The memory is cut off from the gradient (detach, .data or no_grad), so no encoder could learn from it.",
)
edited(
    "DecoderLayer",
    "decoder_returns_the_weights_too",
    THEN,
    THEN + ", None",
    says="You return more than one thing; only the tokens are asked for.",
)
edited(
    "DecoderLayer",
    "decoder_norm_at_the_end",
    THEN,
    THEN.replace("return ", "return self.norm3(") + ")",
    says="You normalise once more at the end; the layer returns its stream as it is.",
)
edited(
    "DecoderLayer",
    "decoder_without_bias",
    "self.linear1 = nn.Linear(d_model, d_ff)",
    "self.linear1 = nn.Linear(d_model, d_ff, bias=False)",
    says="linear1 has no bias; only the attentions' layers go without one.",
)


@wrong(
    "DecoderLayer",
    says="y += ... writes into the tensor that was handed in; write y = y + ...",
    based_on="DecoderLayer",
)
class decoder_changes_its_input:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        seen = self.norm1(y)
        with torch.no_grad():
            y += self.self_attention(seen, seen, self_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return y + self.linear2(self.linear1(self.norm3(y)).relu())


edited(
    "DecoderLayer",
    "decoder_with_a_norm_too_many",
    "self.self_attention = MultiHeadAttention(d_model, n_heads)",
    "self.self_attention = MultiHeadAttention(d_model, n_heads); self.final_norm = nn.LayerNorm(d_model)",
    says="Your layer has parameters beside its parts: something that learns and that was not asked for.",
)
edited(
    "DecoderLayer",
    "decoder_dropout",
    THEN,
    "return y + nn.functional.dropout(self.linear2(self.linear1(self.norm3(y)).relu()), 0.1, self.training)",
    says="There is dropout in your layer, so that it answers differently every time; this set has none.",
)


@wrong(
    "DecoderLayer",
    says="You make one row of the cross mask for all queries, in which a key is open to everybody if it is to "
    "anybody; the mask may differ from query to query.",
    based_on="DecoderLayer",
)
class decoder_cross_mask_the_same_for_all_queries:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        if cross_mask is not None:
            cross_mask = cross_mask.any(dim=-2, keepdim=True)
        z = self.norm1(y)
        y = y + self.self_attention(z, z, self_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return y + self.linear2(torch.relu(self.linear1(self.norm3(y))))


@wrong(
    "DecoderLayer",
    says="You combine a given self_mask with the causal one; the mask is used as it is.",
    based_on="DecoderLayer",
)
class decoder_given_self_mask_made_causal:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        if self_mask is not None:
            T = y.shape[1]
            self_mask = self_mask & torch.tril(torch.ones(T, T, dtype=torch.bool))
        h = self.norm1(y)
        y = y + self.self_attention(h, h, self_mask)[0]
        h = self.norm2(y)
        y = y + self.cross_attention(h, memory, cross_mask)[0]
        h = self.norm3(y)
        return y + self.linear2(torch.relu(self.linear1(h)))


@wrong(
    "DecoderLayer",
    says="Without a cross_mask, where memory and written tokens are equally long, token t sees the memory only up "
    "to t; None means that everybody sees everything.",
    based_on="DecoderLayer",
)
class decoder_memory_up_to_its_own_place:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        T, S = (y.shape[1], memory.shape[1])
        if cross_mask is None and S == T:
            cross_mask = torch.ones(T, S, dtype=torch.bool).tril()
        z = self.norm1(y)
        y = y + self.self_attention(z, z, self_mask)[0]
        y = y + self.cross_attention(self.norm2(y), memory, cross_mask)[0]
        return y + self.linear2(torch.relu(self.linear1(self.norm3(y))))


@wrong(
    "DecoderLayer",
    says="Two things: norm2 and norm3 are exchanged; and without self_mask your tokens see only what comes before "
    "them.",
    based_on="DecoderLayer",
)
class decoder_norms_exchanged_and_causal:
    def forward(self, y, memory, self_mask=None, cross_mask=None):
        if self_mask is None:
            self_mask = torch.ones(y.shape[1], y.shape[1], dtype=torch.bool).tril()
        z = self.norm1(y)
        y = y + self.self_attention(z, z, self_mask)[0]
        y = y + self.cross_attention(self.norm3(y), memory, cross_mask)[0]
        return y + self.linear2(torch.relu(self.linear1(self.norm2(y))))


@right("DecoderLayer")
class DecoderWithFunctions(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        for name in ("self_attention", "cross_attention"):
            setattr(self, name, MultiHeadAttention(d_model, n_heads))
        for n in (3, 2, 1):
            setattr(self, f"norm{n}", nn.LayerNorm(d_model, eps=1e-5))
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)
        self.activation = nn.functional.relu

    def forward(self, y, memory, self_mask=None, cross_mask=None):
        asks = self.norm1(y)
        written = y + self.self_attention(x_q=asks, x_kv=asks, mask=self_mask)[0]
        found, _weights = self.cross_attention(x_q=self.norm2(written), x_kv=memory, mask=cross_mask)
        both = written + found
        return both + self.linear2(self.activation(self.linear1(self.norm3(both))))


@right("DecoderLayer")
class DecoderInALoop(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.norm1, self.norm2, self.norm3 = nn.LayerNorm(d_model), nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)
        self.register_buffer("zero", torch.tensor(0.0))

    def forward(self, y, memory, self_mask=None, cross_mask=None):
        parts = [
            (self.norm1, lambda n: self.self_attention(n, n, self_mask)[0]),
            (self.norm2, lambda n: self.cross_attention(n, memory, cross_mask)[0]),
            (self.norm3, lambda n: self.linear2(torch.maximum(self.linear1(n), self.zero))),
        ]
        for norm, part in parts:
            y = part(norm(y)) + y
        return y


@right("DecoderLayer")
class DecoderWithFullMasks(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.n_heads = n_heads
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.norm1, self.norm2, self.norm3 = (nn.LayerNorm(d_model) for _ in range(3))
        self.linear1, self.linear2 = nn.Linear(d_model, d_ff), nn.Linear(d_ff, d_model)

    def full(self, mask, B, T_q, T_k):
        allowed = torch.ones(B, self.n_heads, T_q, T_k, dtype=torch.bool)
        return allowed if mask is None else allowed & mask

    def forward(self, y, memory, self_mask=None, cross_mask=None):
        (B, T, _), S = y.shape, memory.shape[1]
        n = self.norm1(y)
        y = y + self.self_attention(n, n, self.full(self_mask, B, T, T))[0]
        y = y + self.cross_attention(self.norm2(y), memory, self.full(cross_mask, B, T, S))[0]
        hidden = self.linear1(self.norm3(y))
        return y + self.linear2(torch.where(hidden > 0, hidden, torch.zeros_like(hidden)))


# ---------------------------------------------------------------------------------- exercise 3: model_kinds


@wrong(
    "model_kinds",
    says="Where one sequence is read and another one written, a decoder alone has no part that reads the "
    "first as a whole.",
)
def decoder_for_all_that_is_written(student_id):
    kinds = dict(a="encoder", b="decoder", c="decoder", d="encoder", e="decoder", f="decoder", g="encoder")
    return kinds


@wrong(
    "model_kinds",
    says="Continuing a text needs no encoder: there is nothing to be read besides what is being written.",
)
def both_for_all_that_is_written(student_id):
    return dict(a="encoder", b="both", c="both", d="encoder", e="both", f="both", g="encoder")


@wrong(
    "model_kinds",
    says="For marking words and for filling a gap you take a causal model; words to the right help there, so "
    "every token should see every other.",
)
def decoder_for_single_words(student_id):
    return dict(a="encoder", b="decoder", c="both", d="decoder", e="both", f="decoder", g="decoder")


@wrong("model_kinds", says="To fill a gap from both sides is what an encoder can and a causal decoder cannot do.")
def decoder_for_the_gap(student_id):
    return dict(a="encoder", b="decoder", c="both", d="encoder", e="both", f="decoder", g="decoder")


@wrong(
    "model_kinds",
    says="In marking the words of a text nothing is written: one answer for each word comes straight from the encoder.",
)
def both_for_marking_words(student_id):
    return dict(a="encoder", b="decoder", c="both", d="both", e="both", f="decoder", g="encoder")


@wrong(
    "model_kinds",
    says="Speech that becomes text is two sequences of different kinds: a decoder has to write what the "
    "encoder has heard.",
)
def encoder_for_speech(student_id):
    return dict(a="encoder", b="decoder", c="both", d="encoder", e="encoder", f="decoder", g="encoder")


for task, kind, says in [
    (
        "a",
        "decoder",
        "One word about the whole text, such as spam or not, needs no writing: an encoder reads all of it at "
        "once and a layer on top decides.",
    ),
    (
        "a",
        "both",
        "One word about the whole text needs no decoder, which is for writing a sequence: a layer on top of the "
        "encoder decides.",
    ),
    ("b", "both", "A message that is continued needs no encoder: what is there and what is written are one text."),
    ("b", "encoder", "To go on with a text is to write it word by word, and that is what a decoder does."),
    (
        "c",
        "decoder",
        "A translation reads one sequence and writes another: an encoder sees the whole of the first, to "
        "the right as well.",
    ),
    ("c", "encoder", "A translation is a text of another length in another order; it has to be written by a decoder."),
    (
        "d",
        "decoder",
        "For marking words what stands to the right helps, too: every word should see every other, which "
        "is an encoder.",
    ),
    (
        "e",
        "decoder",
        "Speech comes in as another sequence, which has to be heard as a whole by an encoder before a decoder writes.",
    ),
    (
        "f",
        "both",
        "A model that makes something up from nothing has nothing to read beside what it has written "
        "itself: a decoder is enough.",
    ),
    ("f", "encoder", "To make up a sequence is to write it step by step, and that is what a decoder does."),
    (
        "g",
        "both",
        "To fill a gap one word is asked for, with both sides in view: the encoder's answer at this place is enough.",
    ),
]:
    right_kind = {
        "a": "encoder",
        "b": "decoder",
        "c": "both",
        "d": "encoder",
        "e": "both",
        "f": "decoder",
        "g": "encoder",
    }
    edited("model_kinds", f"{task}_by_{kind}", f'"{task}": "{right_kind[task]}"', f'"{task}": "{kind}"', says=says)


# ------------------------------------------------------------------------ exercise 4: teacher_forced_logits


@wrong(
    "teacher_forced_logits",
    says="You feed the target itself: each position reads the very token that it has to predict. Put sos in front and "
    "leave the last token out.",
)
def target_not_shifted(model, source, target, sos):
    return model(source, target)


@wrong(
    "teacher_forced_logits",
    says="You shift twice: logits[:, t] then knows only the tokens up to t - 2. One sos in front is enough.",
)
def shifted_twice(model, source, target, sos):
    B = len(target)
    return model(source, torch.cat([torch.full((B, 2), sos), target], dim=1)[:, : target.shape[1]])


@wrong(
    "teacher_forced_logits",
    says="You shift the other way: the model reads the token after the one that it has to predict.",
)
def shifted_to_the_left(model, source, target, sos):
    return model(source, torch.cat([target[:, 1:], torch.full((len(target), 1), sos)], dim=1))


@wrong(
    "teacher_forced_logits",
    says="sos stands at the end of what you feed; it comes before the first token.",
)
def sos_at_the_end(model, source, target, sos):
    return model(source, torch.cat([target[:, :-1], torch.full((len(target), 1), sos)], dim=1))


@wrong(
    "teacher_forced_logits",
    says="sos takes the place of the first token of the target; it is put in front of it.",
)
def sos_in_place_of_the_first_token(model, source, target, sos):
    prefix = target.clone()
    prefix[:, 0] = sos
    return model(source, prefix)


@wrong(
    "teacher_forced_logits",
    says="After your shift the last token of the target stands in front (torch.roll goes round in a circle); "
    "sos belongs there.",
)
def rolled_without_sos(model, source, target, sos):
    return model(source, target.roll(1, dims=1))


@wrong(
    "teacher_forced_logits",
    says="You shift the sequences of the batch (axis 0) instead of the tokens of each (axis 1).",
)
def shifted_along_the_batch(model, source, target, sos):
    prefix = target.roll(1, dims=0)
    prefix[0] = sos
    return model(source, prefix)


@wrong(
    "teacher_forced_logits",
    says="You feed the whole target behind sos and return all logits: that is one position too many. The last "
    "one predicts what comes after the target.",
)
def one_position_too_many(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(target), 1), sos), target], dim=1))


@wrong(
    "teacher_forced_logits",
    says="You feed sos and the target and drop the first of the logits; drop the last: the first ones predict "
    "the first token.",
)
def first_logits_dropped(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(target), 1), sos), target], dim=1))[:, 1:]


@wrong(
    "teacher_forced_logits",
    says="One position is missing: you feed the target without its last token and without sos in front.",
)
def one_position_too_few(model, source, target, sos):
    return model(source, target[:, :-1])


@wrong(
    "teacher_forced_logits",
    says="You feed what the model has predicted; a teacher feeds the right tokens, whatever was predicted.",
)
def own_predictions_fed(model, source, target, sos):
    prefix, rows = torch.full((len(target), 1), sos), []
    for _ in range(target.shape[1]):
        rows.append(model(source, prefix)[:, -1])
        prefix = torch.cat([prefix, rows[-1].argmax(dim=1, keepdim=True)], dim=1)
    return torch.stack(rows, dim=1)


@wrong(
    "teacher_forced_logits",
    says="Step by step you take the logits of the first position each time; those for the next token stand at "
    "the last one.",
)
def first_position_of_each_step(model, source, target, sos):
    prefix = torch.cat([torch.full((len(target), 1), sos), target], dim=1)
    return torch.stack([model(source, prefix[:, : t + 1])[:, 0] for t in range(target.shape[1])], dim=1)


@wrong(
    "teacher_forced_logits",
    says="You feed one token at a time without those before it; the model has to see the whole prefix.",
)
def one_token_at_a_time(model, source, target, sos):
    prefix = torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1)
    return torch.cat([model(source, prefix[:, t : t + 1]) for t in range(target.shape[1])], dim=1)


@wrong(
    "teacher_forced_logits",
    says="Your result is cut off from the gradient (no_grad, detach or .data), so nothing can be trained with it.",
)
def without_gradient(model, source, target, sos):
    with torch.no_grad():
        return model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1))


@wrong(
    "teacher_forced_logits",
    says="You return probabilities; the model's logits themselves are asked for, without a softmax.",
)
def softmax_of_the_logits(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1)).softmax(dim=2)


@wrong(
    "teacher_forced_logits",
    says="You return log-probabilities; the model's logits themselves are asked for.",
)
def log_softmax_of_the_logits(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1)).log_softmax(dim=2)


@wrong(
    "teacher_forced_logits",
    says="You return the logits of the right tokens only; the logits of all tokens at each position are asked for.",
)
def logits_of_the_target_only(model, source, target, sos):
    logits = model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1))
    return logits.gather(2, target[:, :, None])[:, :, 0]


@wrong("teacher_forced_logits", says="You return the most likely tokens; the logits themselves are asked for.")
def tokens_instead_of_logits(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1)).argmax(dim=2)


@wrong(
    "teacher_forced_logits",
    says="Your start symbol is always 0; which number it has is said by the argument sos.",
)
def sos_always_zero(model, source, target, sos):
    return model(source, torch.cat([torch.zeros_like(target[:, :1]), target[:, :-1]], dim=1))


@wrong(
    "teacher_forced_logits",
    says="The model is given the source shifted and no target; the prefix is made from the target.",
)
def source_as_prefix(model, source, target, sos):
    return model(source, torch.cat([torch.full((len(source), 1), sos), source[:, :-1]], dim=1))


@wrong("teacher_forced_logits", says="Source and prefix are exchanged: it is model(source, prefix).")
def source_and_prefix_exchanged(model, source, target, sos):
    return model(torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1), source)


@wrong(
    "teacher_forced_logits",
    says="You shift the target in place and so change the caller's tensor; build the prefix as a new one.",
)
def target_changed_in_place(model, source, target, sos):
    target[:, 1:] = target[:, :-1].clone()
    target[:, 0] = sos
    return model(source, target)


@wrong(
    "teacher_forced_logits",
    says="You put the source in front of the prefix as well; the model reads it as its first argument, and the "
    "prefix holds only what was written.",
)
def source_in_front_of_the_prefix(model, source, target, sos):
    B, T = target.shape
    start = torch.full((B, 1), sos, dtype=torch.long)
    prefix = torch.cat([source, start, target[:, :-1]], dim=1)
    return model(source, prefix)[:, -T:]


@wrong("teacher_forced_logits", says="You set the logits after an end symbol to zero; those positions count as well.")
def logits_after_the_end_zeroed(model, source, target, sos):
    start = torch.full_like(target[:, :1], sos)
    prefix = torch.cat([start, target[:, :-1]], dim=1)
    logits = model(source, prefix)
    ended = (prefix == 1).cumsum(dim=1) > 0
    return logits.masked_fill(ended[:, :, None], 0.0)


@wrong(
    "teacher_forced_logits",
    says="You put the model into evaluation mode and leave it so: the training would go on without dropout.",
)
def left_in_evaluation_mode(model, source, target, sos):
    if isinstance(model, nn.Module):
        model.eval()
    return model(source, torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1))


@right("teacher_forced_logits")
def step_by_step(model, source, target, sos):
    prefix = torch.full((target.size(0), 1), sos, dtype=torch.long)
    rows = []
    for t in range(target.size(1)):
        rows.append(model(source, prefix)[:, -1, :])
        prefix = torch.cat((prefix, target[:, t].unsqueeze(1)), dim=1)
    return torch.stack(rows, dim=1)


@right("teacher_forced_logits")
def last_of_all_dropped(model, source, target, sos):
    prefix = torch.hstack([target.new_full((target.shape[0], 1), sos), target])
    return model(source, prefix)[:, :-1, :]


@right("teacher_forced_logits")
def by_padding(model, source, target, sos):
    return model(source, nn.functional.pad(target, (1, 0), value=sos)[:, :-1])


@right("teacher_forced_logits")
def by_roll(model, source, target, sos):
    prefix = torch.roll(target, shifts=1, dims=1)
    prefix[:, 0] = sos
    return model(source, prefix)


@right("teacher_forced_logits")
def sequence_by_sequence(model, source, target, sos):
    rows = [
        model(source[b : b + 1], torch.tensor([[sos, *target[b, :-1].tolist()]]))[0] for b in range(target.shape[0])
    ]
    return torch.stack(rows)


# -------------------------------------------------------------------------------- exercise 5: greedy_decode

CHOOSE = "token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)"
FILL = "token = token.masked_fill(finished, eos)"
RETURN = "return prefix[:, 1:]"

edited(
    "greedy_decode",
    "stops_when_any_has_ended",
    "if finished.all():",
    "if finished.any():",
    says="You stop as soon as one sequence has written its end; the others have to go on.",
)
edited(
    "greedy_decode",
    "stops_when_the_first_row_has_ended",
    "if finished.all():",
    "if finished[0]:",
    says="You stop when the first sequence of the batch has ended; the others have to go on.",
)
edited(
    "greedy_decode",
    "goes_on_after_the_end",
    FILL,
    "pass",
    says="After its end a sequence goes on with what the model says; it should get nothing but eos.",
)


@wrong(
    "greedy_decode",
    says="eos has no effect in your function: a sequence that has written it is finished, and after it only "
    "eos follows.",
)
def eos_ignored(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
    return prefix[:, 1:]


edited(
    "greedy_decode",
    "finished_rows_filled_with_sos",
    FILL,
    "token = token.masked_fill(finished, sos)",
    says="Finished sequences are filled up with sos; they should be filled up with eos.",
)
edited(
    "greedy_decode",
    "finished_rows_filled_with_zero",
    FILL,
    "token = token.masked_fill(finished, 0)",
    says="Finished sequences are filled up with 0; they should be filled up with eos, whatever its number.",
)


@wrong("greedy_decode", says="Finished sequences are filled up with -1; they should be filled up with eos.")
def finished_rows_filled_with_minus_one(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    written = prefix[:, 1:]
    return written.masked_fill((written == eos).int().cumsum(dim=1) - (written == eos).int() > 0, -1)


@wrong(
    "greedy_decode",
    says="The eos of your sequences is missing: the first one stays, and eos fills up what comes after it.",
)
def end_not_written(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    written = prefix[:, 1:]
    return written.masked_fill(written == eos, 0)


edited(
    "greedy_decode",
    "last_column_dropped",
    RETURN,
    "return prefix[:, 1:-1]",
    says="The last token of your result is missing; the sequences are cut off one token too early.",
)
edited(
    "greedy_decode",
    "sos_returned",
    RETURN,
    "return prefix",
    says="Your result begins with sos; only what was written is asked for.",
)
edited(
    "greedy_decode",
    "sos_counts_as_written",
    "range(max_len)",
    "range(max_len - 1)",
    says="You write one token too few: max_len counts the written tokens, without sos.",
)
edited(
    "greedy_decode",
    "one_step_too_many",
    "range(max_len)",
    "range(max_len + 1)",
    says="You write one token more than max_len.",
)


@wrong("greedy_decode", says="You put eos at the end of sequences that have not ended; they simply stop at max_len.")
def eos_put_at_the_end_by_force(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    written = prefix[:, 1:].clone()
    written[:, -1] = eos
    return written


edited(
    "greedy_decode",
    "logits_of_the_first_place",
    CHOOSE,
    "token = model(source, prefix)[:, 0].argmax(dim=1)",
    says="You take the logits of the first place, which always say the same; those for the next token stand "
    "at the last place.",
)
edited(
    "greedy_decode",
    "logits_averaged_over_places",
    CHOOSE,
    "token = model(source, prefix).mean(dim=1).argmax(dim=1)",
    says="You mix the logits of all places; those for the next token stand at the last place.",
)


@wrong(
    "greedy_decode",
    says="Your argmax runs over the sequences of the batch; it should run over the tokens, the last axis.",
)
def argmax_over_the_batch(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            best = model(source, prefix)[:, -1].argmax(dim=0)
            token = best[torch.arange(len(source)) % len(best)]
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    return prefix[:, 1:]


edited(
    "greedy_decode",
    "argmax_over_places",
    CHOOSE,
    "token = model(source, prefix).argmax(dim=1)[:, -1]",
    says="Your argmax runs over the places; take the last place first, and then the largest logit over the tokens.",
)
edited(
    "greedy_decode",
    "smallest_logit",
    CHOOSE,
    "token = model(source, prefix)[:, -1].argmin(dim=1)",
    says="You choose the token with the smallest logit.",
)


@wrong(
    "greedy_decode",
    says="Where logits are equally large, you take the token with the largest number; the smallest is asked for.",
)
def last_of_equal_logits(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            logits = model(source, prefix)[:, -1]
            token = logits.shape[1] - 1 - logits.flip(1).argmax(dim=1)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    return prefix[:, 1:]


@wrong(
    "greedy_decode", says="You draw tokens at random by their probabilities; greedy means to take the most likely one."
)
def sampled(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            torch.manual_seed(0)
            token = torch.multinomial(model(source, prefix)[:, -1].softmax(dim=1), 1)[:, 0]
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    return prefix[:, 1:]


edited(
    "greedy_decode",
    "only_the_last_token_fed",
    CHOOSE,
    "token = model(source, prefix[:, -1:])[:, -1].argmax(dim=1)",
    says="You feed the last token alone; the model has to see everything that was written before, beginning with sos.",
)
edited(
    "greedy_decode",
    "fed_without_sos",
    CHOOSE,
    "token = model(source, prefix[:, 1:] if prefix.shape[1] > 1 else prefix)[:, -1].argmax(dim=1)",
    says="After the first step you leave sos out of what you feed; it stays in front.",
)
edited(
    "greedy_decode",
    "begins_with_eos",
    "prefix = torch.full((len(source), 1), sos)",
    "prefix = torch.full((len(source), 1), eos)",
    says="Your sequences begin with eos; they begin with sos.",
)
edited(
    "greedy_decode",
    "begins_with_zero",
    "prefix = torch.full((len(source), 1), sos)",
    "prefix = torch.zeros(len(source), 1, dtype=torch.long)",
    says="Your sequences always begin with 0; which number the start symbol has is said by the argument sos.",
)
edited(
    "greedy_decode",
    "own_tokens_not_fed",
    CHOOSE,
    "token = model(source, torch.full_like(prefix, sos))[:, -1].argmax(dim=1)",
    says="You feed sos again and again; the model has to read what it has written itself.",
)


@wrong("greedy_decode", says="You put new tokens in front of the old ones; they come after them.")
def new_tokens_in_front(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([token[:, None], prefix], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    return prefix[:, 1:]


edited(
    "greedy_decode",
    "all_rows_from_the_first",
    CHOOSE,
    "token = model(source, prefix)[:1, -1].argmax(dim=1).expand(len(source))",
    says="All sequences get the tokens of the first one; each of the batch has its own.",
)
edited(
    "greedy_decode",
    "source_and_prefix_exchanged_in_decoding",
    CHOOSE,
    "token = model(prefix, source)[:, -1].argmax(dim=1)",
    says="Source and prefix are exchanged: it is model(source, prefix).",
)
edited(
    "greedy_decode",
    "tokens_as_floats",
    RETURN,
    "return prefix[:, 1:].float()",
    says="Your token numbers are floats; they should be whole numbers, of dtype torch.long.",
)


@wrong(
    "greedy_decode",
    says="You return lists that end with their eos; a tensor is asked for, in which shorter rows are filled "
    "up with eos.",
)
def lists_of_unequal_length(model, source, sos, eos, max_len):
    prefix = torch.full((len(source), 1), sos)
    finished = torch.zeros(len(source), dtype=torch.bool)
    with torch.no_grad():
        for _ in range(max_len):
            token = model(source, prefix)[:, -1].argmax(dim=1)  # (B,)
            token = token.masked_fill(finished, eos)
            prefix = torch.cat([prefix, token[:, None]], dim=1)
            finished = finished | (token == eos)
            if finished.all():
                break
    rows = [row.tolist() for row in prefix[:, 1:]]
    return [row[: row.index(eos) + 1] if eos in row else row for row in rows]


@wrong(
    "greedy_decode",
    says="You never write a token twice in a row; greedy means to take the most likely one, also where it was the "
    "last.",
)
@torch.no_grad()
def never_twice_the_same(model, source, sos, eos, max_len):
    B = len(source)
    prefix = torch.full((B, 1), sos, dtype=torch.long)
    done = torch.zeros(B, dtype=torch.bool)
    for _ in range(max_len):
        logits = model(source, prefix)[:, -1].clone()
        logits.scatter_(1, prefix[:, -1:], float("-inf"))
        token = logits.argmax(dim=1)
        token[done] = eos
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        done |= token == eos
        if done.all():
            break
    return prefix[:, 1:]


@wrong("greedy_decode", says="You do not allow eos as the first token; a sequence may be empty.")
@torch.no_grad()
def no_end_at_the_first_step(model, source, sos, eos, max_len):
    B = len(source)
    prefix = torch.full((B, 1), sos, dtype=torch.long)
    done = torch.zeros(B, dtype=torch.bool)
    for step in range(max_len):
        logits = model(source, prefix)[:, -1].clone()
        if step == 0:
            logits[:, eos] = float("-inf")
        token = logits.argmax(dim=-1).masked_fill(done, eos)
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        done = done | (token == eos)
        if done.all():
            break
    return prefix[:, 1:]


@wrong(
    "greedy_decode", says="You stop at a length that you make from the source's; only max_len bounds what is written."
)
@torch.no_grad()
def stopped_by_the_length_of_the_source(model, source, sos, eos, max_len):
    B, S = source.shape
    limit = min(max_len, max(5, 2 * S))
    prefix = torch.full((B, 1), sos, dtype=torch.long)
    done = torch.zeros(B, dtype=torch.bool)
    for _ in range(limit):
        token = model(source, prefix)[:, -1].argmax(dim=-1)
        token = torch.where(done, torch.tensor(eos), token)
        done = done | (token == eos)
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        if done.all():
            break
    return prefix[:, 1:]


@wrong(
    "greedy_decode",
    says="Two things: max_len counts the start symbol in your function, so one token is missing; and you put eos "
    "at the end of sequences that have not ended.",
)
@torch.no_grad()
def sos_counted_and_end_forced(model, source, sos, eos, max_len):
    B = len(source)
    prefix = torch.full((B, 1), sos, dtype=torch.long)
    done = torch.zeros(B, dtype=torch.bool)
    while prefix.shape[1] < max_len:
        token = model(source, prefix)[:, -1].argmax(dim=-1)
        token[done] = eos
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        done |= token == eos
        if done.all():
            break
    prefix[:, -1] = eos
    return prefix[:, 1:]


@wrong(
    "greedy_decode",
    says="Two things: you do not allow eos as the first token; and finished sequences are filled up with 0, where "
    "eos belongs.",
)
@torch.no_grad()
def no_end_at_first_and_filled_with_zero(model, source, sos, eos, max_len):
    B = len(source)
    prefix = torch.full((B, 1), sos, dtype=torch.long)
    done = torch.zeros(B, dtype=torch.bool)
    for step in range(max_len):
        logits = model(source, prefix)[:, -1].clone()
        if step == 0:
            logits[:, eos] = -1000000000.0
        token = logits.argmax(dim=-1)
        token[done] = 0
        done |= token == eos
        prefix = torch.cat([prefix, token[:, None]], dim=1)
        if done.all():
            break
    return prefix[:, 1:]


for width in ("12", "8"):
    edited(
        "greedy_decode",
        f"a_window_of_{width}",
        "model(source, prefix)[:, -1]",
        f"model(source, prefix[:, -{width}:])[:, -1]",
        says=f"Your model is given the last {width} tokens only; the next one depends on all that has been written.",
    )


@right("greedy_decode")
@torch.no_grad()
def one_after_another(model, source, sos, eos, max_len):
    result = torch.full((source.shape[0], max_len), eos, dtype=torch.long)
    for b in range(source.shape[0]):
        written = [sos]
        for t in range(max_len):
            logits = model(source[b : b + 1], torch.tensor([written]))
            written.append(int(torch.argmax(logits[0, -1])))
            result[b, t] = written[-1]
            if written[-1] == eos:
                break
    return result


@right("greedy_decode")
def to_the_end_and_then_filled(model, source, sos, eos, max_len):
    prefix = torch.full((source.size(0), 1), sos, dtype=torch.long)
    with torch.no_grad():
        for _ in range(max_len):
            token = torch.argmax(model(source, prefix)[:, -1, :], dim=-1, keepdim=True)
            prefix = torch.cat((prefix, token), dim=-1)
    written = prefix[:, 1:]
    ended = (written == eos).long().cumsum(dim=1) > 0
    return torch.where(ended, torch.full_like(written, eos), written)


@right("greedy_decode")
def only_the_unfinished_rows(model, source, sos, eos, max_len):
    written = torch.full((len(source), max_len + 1), eos)
    written[:, 0] = sos
    active = torch.arange(len(source))
    for t in range(max_len):
        with torch.inference_mode():
            best = model(source[active], written[active, : t + 1])[:, t].max(dim=1).indices
        written[active, t + 1] = best
        active = active[best != eos]
        if active.numel() == 0:
            break
    return written[:, 1 : t + 2]


@right("greedy_decode")
def with_python_lists(model, source, sos, eos, max_len):
    rows = [[] for _ in source]
    done = [False] * len(rows)
    while len(rows[0]) < max_len and not all(done):
        logits = model(source, torch.tensor([[sos, *row] for row in rows])).detach()
        for b, row in enumerate(rows):
            token = eos if done[b] else logits[b, -1].argmax().item()
            row.append(token)
            done[b] = done[b] or token == eos
    return torch.tensor(rows)


@right("greedy_decode")
def with_log_softmax(model, source, sos, eos, max_len):
    ys = torch.ones(source.shape[0], 1, dtype=torch.int64) * sos
    alive = torch.ones(source.shape[0], dtype=torch.bool)
    for _ in range(max_len):
        scores = model(source, ys).detach()[:, -1].log_softmax(dim=-1)
        best = (scores == scores.max(dim=-1, keepdim=True).values).int().argmax(dim=-1)
        best = torch.where(alive, best, eos)
        ys = torch.cat([ys, best.unsqueeze(-1)], dim=-1)
        alive = alive & (best != eos)
    return ys[:, 1:]


# ----------------------------------------------------------------------------- exercise 6: train_classifier

MEASURED = 'for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:'


@wrong(
    "train_classifier",
    says="The same seed gives other lists the second time: something random in your function does not follow it, the "
    "model's first numbers or the order of the batches. Is it set inside, before the model is made, and does PyTorch "
    "draw all? NumPy and Python have seeds of their own.",
)
def unseeded(epochs, seed):
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


edited(
    "train_classifier",
    "always_the_same_seed",
    "torch.manual_seed(seed)",
    "torch.manual_seed(0)",
    says="Every seed gives the same lists: you set a fixed one instead of the argument.",
)


@wrong(
    "train_classifier",
    says="You set the seed after the model is made, so that its first numbers do not follow it; set it before.",
)
def seeded_after_the_model(epochs, seed):
    model = ReviewClassifier()
    torch.manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


edited(
    "train_classifier",
    "shuffled_without_the_seed",
    "torch.randperm(len(TRAIN_TEXTS)).split(40)",
    "torch.from_numpy(np.random.default_rng().permutation(len(TRAIN_TEXTS))).split(40)",
    says="The same seed gives other lists the second time: something random in your function does not follow it, the "
    "model's first numbers or the order of the batches. Is it set inside, before the model is made, and does PyTorch "
    "draw all? NumPy and Python have seeds of their own.",
)
edited(
    "train_classifier",
    "validation_measured_on_the_training_notes",
    '("val_", VAL_TEXTS, VAL_LABELS)',
    '("val_", TRAIN_TEXTS, TRAIN_LABELS)',
    says="Your validation numbers are measured on the training notes; they belong to VAL_TEXTS and VAL_LABELS.",
)
edited(
    "train_classifier",
    "training_and_validation_exchanged",
    MEASURED,
    'for kind, texts, labels in [("val_", TRAIN_TEXTS, TRAIN_LABELS), ("", VAL_TEXTS, VAL_LABELS)]:',
    says="Training and validation are exchanged in your dict: val_ stands for the validation notes.",
)
edited(
    "train_classifier",
    "measured_with_dropout",
    "model.eval()",
    "model.train()",
    says="You measure with dropout: call model.eval() before you measure, and model.train() before you go on.",
)


@wrong(
    "train_classifier",
    says="After the first measurement your model stays in evaluation mode; call model.train() in each epoch.",
)
def training_mode_in_the_first_epoch_only(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    model.train()
    for _ in range(epochs):
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


edited(
    "train_classifier",
    "trained_in_evaluation_mode",
    "model.train()",
    "model.eval()",
    says="Your model trains in evaluation mode, without dropout; call model.train() before each epoch.",
)


@wrong("train_classifier", says="Your model learns from the validation notes; these are for measuring only.")
def trained_on_the_validation_notes(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(VAL_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(VAL_TEXTS[batch]), VAL_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong("train_classifier", says="Your model learns from the validation notes, too; these are for measuring only.")
def trained_on_all_notes(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        texts, labels = torch.cat([TRAIN_TEXTS, VAL_TEXTS]), torch.cat([TRAIN_LABELS, VAL_LABELS])
        for batch in torch.randperm(len(texts)).split(40):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong(
    "train_classifier",
    says="Your model learns from the validation notes, too: where you measure on them, steps are taken. They are for "
    "measuring only.",
)
def steps_where_it_is_measured(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(VAL_TEXTS), VAL_LABELS).backward()
        optimiser.step()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


ORDER = "torch.randperm(len(TRAIN_TEXTS)).split(40)"
edited(
    "train_classifier",
    "last_batch_left_out",
    ORDER,
    "torch.randperm(len(TRAIN_TEXTS))[:192].split(64)",
    says="Some training notes are left out of an epoch, as by drop_last=True; it goes once through all 200.",
)
edited(
    "train_classifier",
    "drawn_with_replacement",
    ORDER,
    "torch.randint(len(TRAIN_TEXTS), (len(TRAIN_TEXTS),)).split(40)",
    says="Your batches are drawn with replacement: in one epoch some notes come more than once, others not at all. "
    "Shuffle all of them (torch.randperm) and cut that into batches.",
)
edited(
    "train_classifier",
    "two_passes_an_epoch",
    ORDER,
    "torch.cat([torch.randperm(len(TRAIN_TEXTS)) for _ in range(2)]).split(40)",
    says="Your model learns from each note more than once in an epoch; an epoch is one pass over the training notes.",
)
edited(
    "train_classifier",
    "loss_of_the_last_batch",
    "append(nn.functional.cross_entropy(logits, labels).item())",
    "append(nn.functional.cross_entropy(logits, labels).item() if kind else loss.item())",
    says="Your training loss is that of the epoch's last batch alone; take the mean over all batches, or measure it on "
    "all notes after the epoch.",
)


@wrong(
    "train_classifier",
    says="Nothing is learned: the model's numbers stay as they are. Each batch needs loss.backward() "
    "and optimiser.step().",
)
def no_step(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


edited(
    "train_classifier",
    "uphill",
    "loss.backward()",
    "(-loss).backward()",
    says="Your steps go uphill: the loss grows. Check the sign of what you call backward() on.",
)
edited(
    "train_classifier",
    "step_size_too_small",
    "lr=3e-3",
    "lr=1e-6",
    says="Your steps are so small that in 30 epochs next to nothing is learned.",
)
edited(
    "train_classifier",
    "percent",
    "(logits.argmax(dim=1) == labels).double().mean().item()",
    "100 * (logits.argmax(dim=1) == labels).double().mean().item()",
    says="Your accuracies are percentages; shares from 0 to 1 are asked for.",
)
edited(
    "train_classifier",
    "counts_instead_of_shares",
    "(logits.argmax(dim=1) == labels).double().mean().item()",
    "(logits.argmax(dim=1) == labels).double().sum().item()",
    says="Your accuracies are numbers of notes; divide by how many there are.",
)
edited(
    "train_classifier",
    "error_rate",
    "(logits.argmax(dim=1) == labels)",
    "(logits.argmax(dim=1) != labels)",
    says="You count the notes that are judged wrongly; the accuracy is the share judged rightly.",
)
edited(
    "train_classifier",
    "tensors_in_the_lists",
    "append(nn.functional.cross_entropy(logits, labels).item())",
    "append(nn.functional.cross_entropy(logits, labels))",
    says="Your lists hold tensors; .item() makes a float of a tensor with one number.",
)
edited(
    "train_classifier",
    "loss_as_a_sum",
    "nn.functional.cross_entropy(logits, labels).item()",
    'nn.functional.cross_entropy(logits, labels, reduction="sum").item()',
    says="Your losses are sums over the notes; means are asked for.",
)


@wrong("train_classifier", says="Your lists hold a number for each batch; one for each epoch is asked for.")
def one_number_for_each_batch(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            for name in history:
                history[name].append(loss.item() if "loss" in name else 0.5)
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong("train_classifier", says="You measure once, after all epochs; the lists have a number for each epoch.")
def measured_at_the_end_only(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        if _ < epochs - 1:
            continue
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong(
    "train_classifier",
    says="Your last numbers are not what the model gives after the epoch's last step, as when they are measured before "
    "the steps. Measure after them, over all notes.",
)
def measured_before_the_epoch(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return history


@wrong(
    "train_classifier",
    says="Your training accuracy is not what the model gives after the epoch over all 200 notes. On the way (before "
    "the steps, with dropout), or as a mean of the means of unequal batches, it is another number.",
)
def training_accuracy_counted_on_the_way(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        total, hits = 0.0, 0
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            logits = model(TRAIN_TEXTS[batch])
            loss = nn.functional.cross_entropy(logits, TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item() * len(batch)
            hits += (logits.argmax(dim=1) == TRAIN_LABELS[batch]).sum().item()
        history["loss"].append(total / len(TRAIN_TEXTS))
        history["accuracy"].append(hits / len(TRAIN_TEXTS))
        model.eval()
        with torch.no_grad():
            logits = model(VAL_TEXTS)
        history["val_loss"].append(nn.functional.cross_entropy(logits, VAL_LABELS).item())
        history["val_accuracy"].append((logits.argmax(dim=1) == VAL_LABELS).double().mean().item())
    return history


@wrong(
    "train_classifier",
    says="Your accuracies are not shares of all notes of their kind, as when the notes of one batch alone are counted. "
    "All of them are asked for.",
)
def accuracy_of_the_last_batch(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
                logits, labels = model(texts[-32:]), labels[-32:]
                history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
                history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong(
    "train_classifier",
    says="You make a new model in every epoch, so that nothing is kept from one to the next.",
)
def new_model_in_each_epoch(epochs, seed):
    torch.manual_seed(seed)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}
    for _ in range(epochs):
        model = ReviewClassifier()
        optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        for kind, texts, labels in [("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)]:
            with torch.no_grad():
                logits = model(texts)
            history[f"{kind}loss"].append(nn.functional.cross_entropy(logits, labels).item())
            history[f"{kind}accuracy"].append((logits.argmax(dim=1) == labels).double().mean().item())
    return history


@wrong(
    "train_classifier",
    says="You return four lists side by side; a dict with the names loss, accuracy, val_loss and val_accuracy "
    "is asked for.",
)
def lists_without_names(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=3e-3)
    losses, accuracies, val_losses, val_accuracies = [], [], [], []
    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        model.eval()
        with torch.no_grad():
            logits, val_logits = model(TRAIN_TEXTS), model(VAL_TEXTS)
        losses.append(loss.item())
        accuracies.append((logits.argmax(dim=1) == TRAIN_LABELS).double().mean().item())
        val_losses.append(nn.functional.cross_entropy(val_logits, VAL_LABELS).item())
        val_accuracies.append((val_logits.argmax(dim=1) == VAL_LABELS).double().mean().item())
    return losses, accuracies, val_losses, val_accuracies


@wrong(
    "train_classifier",
    says="Your numbers are not those of all notes of a kind, as when the means of unequal batches are averaged: a note "
    "in a small batch then counts more than others. Count over all notes.",
)
def means_of_batches_of_unequal_size(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    history = {name: [] for name in ("loss", "accuracy", "val_loss", "val_accuracy")}

    @torch.no_grad()
    def evaluate(texts, labels):
        model.eval()
        losses, shares = ([], [])
        for t, y in zip(texts.split(128), labels.split(128)):
            logits = model(t)
            losses.append(nn.functional.cross_entropy(logits, y).item())
            shares.append((logits.argmax(1) == y).float().mean().item())
        return (sum(losses) / len(losses), sum(shares) / len(shares))

    for _ in range(epochs):
        model.train()
        for rows in torch.randperm(200).split(40):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(TRAIN_TEXTS[rows]), TRAIN_LABELS[rows]).backward()
            optimiser.step()
        for start, data in (("", (TRAIN_TEXTS, TRAIN_LABELS)), ("val_", (VAL_TEXTS, VAL_LABELS))):
            loss, accuracy = evaluate(*data)
            history[start + "loss"].append(loss)
            history[start + "accuracy"].append(accuracy)
    return history


@wrong(
    "train_classifier",
    says="Your last validation numbers are not what the model gives after the epoch over all 300 notes: the best so "
    "far, or a mean of the means of unequal batches, are other numbers.",
)
def best_so_far(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}

    def measure(texts, labels):
        model.eval()
        with torch.no_grad():
            logits = model(texts)
            loss = nn.functional.cross_entropy(logits, labels).item()
            share = (logits.argmax(dim=1) == labels).float().mean().item()
        return (loss, share)

    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        for prefix, texts, labels in (("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)):
            loss, share = measure(texts, labels)
            history[prefix + "loss"].append(loss)
            history[prefix + "accuracy"].append(share)
    best_loss = np.minimum.accumulate(history["val_loss"])
    best_share = np.maximum.accumulate(history["val_accuracy"])
    history["val_loss"] = [float(value) for value in best_loss]
    history["val_accuracy"] = [float(value) for value in best_share]
    return history


@wrong(
    "train_classifier",
    says="Your losses are not those asked for: a loss is the mean cross-entropy of the logits themselves, without a "
    "softmax before it, over all notes of its kind.",
)
def softmax_before_the_loss(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}

    def measure(texts, labels):
        model.eval()
        with torch.no_grad():
            logits = model(texts)
            loss = nn.functional.cross_entropy(logits.softmax(dim=1), labels).item()
            share = (logits.argmax(dim=1) == labels).float().mean().item()
        return (loss, share)

    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        for prefix, texts, labels in (("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS, VAL_LABELS)):
            loss, share = measure(texts, labels)
            history[prefix + "loss"].append(loss)
            history[prefix + "accuracy"].append(share)
    return history


@wrong(
    "train_classifier",
    says="Your validation numbers are not what the trained model gives for all notes; measure on all of VAL_TEXTS, "
    "after the last step.",
)
def validation_on_some_notes(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.003)
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}

    def measure(texts, labels):
        model.eval()
        with torch.no_grad():
            logits = model(texts)
            loss = nn.functional.cross_entropy(logits, labels).item()
            share = (logits.argmax(dim=1) == labels).float().mean().item()
        return (loss, share)

    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(40):
            loss = nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
        for prefix, texts, labels in (("", TRAIN_TEXTS, TRAIN_LABELS), ("val_", VAL_TEXTS[:100], VAL_LABELS[:100])):
            loss, share = measure(texts, labels)
            history[prefix + "loss"].append(loss)
            history[prefix + "accuracy"].append(share)
    return history


@right("train_classifier")
def all_notes_at_once(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    history = {name: [] for name in ("loss", "accuracy", "val_loss", "val_accuracy")}
    for _ in range(epochs):
        model.train()
        optimiser.zero_grad()
        loss = nn.CrossEntropyLoss()(model(TRAIN_TEXTS), TRAIN_LABELS)
        loss.backward()
        optimiser.step()
        history["loss"].append(float(loss.detach()))
        with torch.no_grad():
            model.eval()
            history["accuracy"].append((model(TRAIN_TEXTS).argmax(-1) == TRAIN_LABELS).sum().item() / len(TRAIN_LABELS))
            logits = model(VAL_TEXTS)
            history["val_loss"].append(float(nn.CrossEntropyLoss()(logits, VAL_LABELS)))
            history["val_accuracy"].append((logits.argmax(-1) == VAL_LABELS).sum().item() / len(VAL_LABELS))
    return history


@right("train_classifier")
def with_data_loaders(epochs, seed):
    from torch.utils.data import DataLoader, TensorDataset

    torch.manual_seed(seed)
    shuffled = DataLoader(
        TensorDataset(TRAIN_TEXTS, TRAIN_LABELS),
        batch_size=16,
        shuffle=True,
        generator=torch.Generator().manual_seed(seed),
    )
    model = ReviewClassifier()
    optimiser = torch.optim.AdamW(model.parameters(), lr=3e-3, weight_decay=0.01)

    def evaluate(texts, labels):
        model.eval()
        total = right = 0
        with torch.no_grad():
            for x, y in DataLoader(TensorDataset(texts, labels), batch_size=64):
                logits = model(x)
                total += nn.functional.cross_entropy(logits, y, reduction="sum").item()
                right += int((logits.argmax(dim=1) == y).sum())
        return total / len(labels), right / len(labels)

    history = {"val_accuracy": [], "val_loss": [], "accuracy": [], "loss": [], "learning_rate": []}
    for _ in range(epochs):
        model.train()
        total = 0.0
        for x, y in shuffled:
            loss = nn.functional.cross_entropy(model(x), y)
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            total += loss.item()
        history["loss"].append(total / len(shuffled))
        history["accuracy"].append(evaluate(TRAIN_TEXTS, TRAIN_LABELS)[1])
        val_loss, val_accuracy = evaluate(VAL_TEXTS, VAL_LABELS)
        history["val_loss"].append(val_loss)
        history["val_accuracy"].append(val_accuracy)
        history["learning_rate"].append(3e-3)
    return history


@right("train_classifier")
def by_momentum(epochs, seed):
    torch.random.manual_seed(seed)
    order = np.random.default_rng(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    loss, accuracy, val_loss, val_accuracy = [], [], [], []
    for _ in range(epochs):
        model.train(True)
        numbers = order.permutation(len(TRAIN_TEXTS))
        for start in range(0, len(numbers), 16):
            batch = torch.from_numpy(numbers[start : start + 16])
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch]).backward()
            optimiser.step()
        model.train(False)
        with torch.no_grad():
            train, val = model(TRAIN_TEXTS), model(VAL_TEXTS)
        loss.append(nn.functional.cross_entropy(train, TRAIN_LABELS).item())
        val_loss.append(nn.functional.cross_entropy(val, VAL_LABELS).item())
        accuracy.append(np.mean(train.argmax(1).numpy() == TRAIN_LABELS.numpy()))
        val_accuracy.append(np.mean(val.argmax(1).numpy() == VAL_LABELS.numpy()))
    return dict(loss=loss, accuracy=accuracy, val_loss=val_loss, val_accuracy=val_accuracy)


@right("train_classifier")
def in_fixed_order_with_a_schedule(epochs, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = ReviewClassifier()
        optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
        schedule = torch.optim.lr_scheduler.ExponentialLR(optimiser, 0.97)
        rows = []
        for _ in range(epochs):
            model.train()
            losses = []
            for texts, labels in zip(TRAIN_TEXTS.chunk(10), TRAIN_LABELS.chunk(10)):
                loss = nn.functional.nll_loss(model(texts).log_softmax(dim=1), labels)
                model.zero_grad()
                loss.backward()
                optimiser.step()
                losses.append(loss.item())
            schedule.step()
            model.eval()
            with torch.inference_mode():
                train, val = model(TRAIN_TEXTS), model(VAL_TEXTS)
            rows.append(
                (
                    sum(losses) / len(losses),
                    (train[:, 1] > train[:, 0]).eq(TRAIN_LABELS.bool()).float().mean().item(),
                    nn.functional.nll_loss(val.log_softmax(dim=1), VAL_LABELS).item(),
                    (val[:, 1] > val[:, 0]).eq(VAL_LABELS.bool()).float().mean().item(),
                )
            )
    names = ["loss", "accuracy", "val_loss", "val_accuracy"]
    return {name: list(column) for name, column in zip(names, zip(*rows))}


@right("train_classifier")
def with_small_steps(epochs, seed):
    torch.manual_seed(seed)
    model = ReviewClassifier()
    optimiser = torch.optim.Adam(model.parameters())
    history = {"loss": [], "accuracy": [], "val_loss": [], "val_accuracy": []}

    def measure(texts, labels):
        with torch.no_grad():
            logits = model(texts)
            return nn.functional.cross_entropy(logits, labels).item(), (
                logits.argmax(1) == labels
            ).float().mean().item()

    for _ in range(epochs):
        model.train()
        for batch in torch.randperm(len(TRAIN_TEXTS)).split(16):
            optimiser.zero_grad()
            nn.functional.cross_entropy(model(TRAIN_TEXTS[batch]), TRAIN_LABELS[batch]).backward()
            optimiser.step()
        model.eval()
        for kind, notes in [("", (TRAIN_TEXTS, TRAIN_LABELS)), ("val_", (VAL_TEXTS, VAL_LABELS))]:
            history[kind + "loss"] += [measure(*notes)[0]]
            history[kind + "accuracy"] += [measure(*notes)[1]]
    return history


# ----------------------------------------------------------------------------- exercise 7: train_reader

edited(
    "train_reader",
    "reader_without_steps",
    "optimiser.step()",
    "pass",
    says="Your model answers new texts hardly better than a guess. Do the steps change the model that you return? Can "
    "it tell words apart (their numbers are names, not sizes)? Does each layer take axis 0 for the batch?",
)
edited(
    "train_reader",
    "reader_goes_uphill",
    "loss = nn.functional.cross_entropy(",
    "loss = -nn.functional.cross_entropy(",
    says="Your model gives the right thing less often than a guess would: do the steps make the loss larger?",
)
edited(
    "train_reader",
    "reader_runs_away",
    "model.parameters(), 1e-2",
    "model.parameters(), 1e30",
    says="Your model's logits are not finite numbers, as when a training runs away: are the steps too large?",
)
edited(
    "train_reader",
    "reader_learns_the_notebook_instead",
    "model(texts[batch]), labels[batch])",
    "model(READ_TEXTS[batch]), READ_LABELS[batch])",
    says="Your function trains on the texts of the notebook and not on those that it is given, so it knows one "
    "language only.",
)
edited(
    "train_reader",
    "reader_question_sees_itself_only",
    "self.attention(x[:, -1:], x)",
    "self.attention(x[:, -1:], x[:, -1:])",
    says="The question sees nothing but itself in your model: its answer stays the same whatever stands before it.",
)
edited(
    "train_reader",
    "reader_without_the_question",
    "self.attention(x[:, -1:], x)",
    "self.attention(x[:, :4].mean(dim=1, keepdim=True), x[:, :4])",
    says="Your model answers alike whatever is asked: the last word never gets in.",
)
edited(
    "train_reader",
    "reader_does_not_mix",
    "answer, _ = self.attention(x[:, -1:], x)",
    "answer = x.mean(dim=1)",
    says="In your model question and things only add up, or one of them never gets in, so the question cannot choose "
    "among the things. They have to meet before the answer is read: that is what attention is for.",
)


@wrong(
    "train_reader",
    says="Your model gives logits for each word of a text, (B, 5, N_THINGS); one row for each text is asked for.",
)
def reader_logits_for_each_word(texts, labels, seed):
    torch.manual_seed(seed)
    words, layer, output = nn.Embedding(N_WORDS, 32), EncoderLayer(32, 2, 64), nn.Linear(32, N_THINGS)
    model = nn.Sequential(words, layer, output)
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(12):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch])[:, -1], labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model.eval()


@wrong("train_reader", says="Your model gives the numbers of the things; asked are the logits, one for each thing.")
def reader_gives_numbers(texts, labels, seed):
    torch.manual_seed(seed)
    model = Reader()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(12):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return lambda new: model(new).argmax(dim=1)


edited(
    "train_reader",
    "reader_and_its_loss",
    "return model.eval()",
    "return model.eval(), loss.item()",
    says="Your function returns several things; the trained model alone is asked for.",
)


@wrong(
    "train_reader",
    says="Your model has learned its texts by heart and knows hardly anything about others.",
)
def reader_by_heart(texts, labels, seed):
    known = {tuple(text): label for text, label in zip(texts.tolist(), labels.tolist())}

    def answer(new):
        things = [known.get(tuple(text), (sum(text) + seed) % N_THINGS) for text in new.tolist()]
        return nn.functional.one_hot(torch.tensor(things), N_THINGS).float()

    return answer


@wrong(
    "train_reader",
    says="Your model knows its 600 texts by heart and many new ones not. One that reads the five words side by side "
    "has to learn each place for itself; with attention what is learned at one place holds at all.",
)
def reader_side_by_side(texts, labels, seed):
    torch.manual_seed(seed)
    model = nn.Sequential(
        nn.Embedding(N_WORDS, 32), nn.Flatten(), nn.Linear(160, 128), nn.ReLU(), nn.Linear(128, N_THINGS)
    )
    optimiser = torch.optim.Adam(model.parameters(), lr=5e-3)
    for _ in range(25):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


@wrong(
    "train_reader",
    says="Your model answers the same text differently each time, as with dropout that is still on: is it in "
    "evaluation mode when you return it?",
)
def reader_left_in_training_mode(texts, labels, seed):
    torch.manual_seed(seed)

    class WithDropout(Reader):
        def forward(self, texts):
            x = self.words(texts)
            answer, _ = self.attention(x[:, -1:], x)
            return self.output(nn.functional.dropout(answer.flatten(1), 0.1, self.training))

    model = WithDropout()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(12):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model


@wrong(
    "train_reader",
    says="What your model says of a text depends on the other texts that come with it, as with batch norm in training "
    "mode. Each text is answered by itself.",
)
def reader_normalises_over_the_batch(texts, labels, seed):
    torch.manual_seed(seed)

    class OverBatch(Reader):
        def forward(self, texts):
            x = self.words(texts)
            answer = self.attention(x[:, -1:], x)[0].flatten(1)
            return self.output((answer - answer.mean(dim=0)) / (answer.var(dim=0, correction=0) + 1e-5).sqrt())

    model = OverBatch()
    optimiser = torch.optim.Adam(model.parameters(), lr=1e-2)
    for _ in range(20):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model.eval()


@right("train_reader")
def reader_of_an_encoder_layer(texts, labels, seed):
    torch.manual_seed(seed)

    class OfLayers(nn.Module):
        def __init__(self, d):
            super().__init__()
            self.words, self.layer = nn.Embedding(N_WORDS, d), EncoderLayer(d, 2, 2 * d)
            self.norm, self.output = nn.LayerNorm(d), nn.Linear(d, N_THINGS)

        def forward(self, texts):
            return self.output(self.norm(self.layer(self.words(texts)))[:, -1])

    model = OfLayers(32)
    optimiser = torch.optim.AdamW(model.parameters(), lr=5e-3)
    for _ in range(150):
        batch = torch.randint(len(texts), (64,))
        optimiser.zero_grad()
        nn.functional.cross_entropy(model(texts[batch]), labels[batch]).backward()
        optimiser.step()
    return model


@right("train_reader")
def reader_of_pytorch_with_dropout(texts, labels, seed):
    class OfPyTorch(nn.Module):
        def __init__(self):
            super().__init__()
            self.words, self.places = nn.Embedding(N_WORDS, 40), nn.Parameter(torch.zeros(5, 40))
            layer = nn.TransformerEncoderLayer(40, 4, 60, dropout=0.1, norm_first=True, batch_first=True)
            self.layers = nn.TransformerEncoder(layer, 1, enable_nested_tensor=False)
            self.output = nn.Sequential(nn.LayerNorm(40), nn.Linear(40, N_THINGS))

        def forward(self, texts):
            return self.output(self.layers(self.words(texts) + self.places)[:, -1])

    model = OfPyTorch().train()
    optimiser = torch.optim.Adam(model.parameters(), lr=4e-3)
    for _ in range(20):
        for batch in torch.randperm(len(texts)).split(50):
            loss = nn.functional.cross_entropy(model(texts[batch]), labels[batch])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
    return model.eval()


@right("train_reader")
def reader_of_a_decoder_layer(texts, labels, seed):
    torch.manual_seed(seed)
    parts = nn.ModuleDict(
        {"words": nn.Embedding(N_WORDS, 24), "layer": DecoderLayer(24, 3, 48), "output": nn.Linear(24, N_THINGS)}
    )

    def model(texts):
        x = parts["words"](texts)
        return parts["output"](parts["layer"](x[:, 4:], x[:, :4])[:, 0])

    optimiser = torch.optim.RMSprop(parts.parameters(), lr=3e-3)
    for _ in range(20):
        for start in range(0, len(texts), 30):
            loss = nn.functional.cross_entropy(model(texts[start : start + 30]), labels[start : start + 30])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()

    def without_gradients(new):
        with torch.no_grad():
            return model(new).log_softmax(dim=-1)

    return without_gradients


CHOICES = "Model, optimiser, steps and batches are the student's; this one reads as well."

# ---------------------------------------------------------------------------------------- equal mutants

EARLY = (
    "To stop early saves time only: finished sequences get nothing but eos, and such columns at the end do not count."
)
RECIPE = "Optimiser, step size and batches are the student's; these train as well."

survivor("greedy_decode", "break", "pass", why=EARLY)
survivor("greedy_decode", "break", "continue", why=EARLY)
survivor("train_classifier", "lr=3e-3", "Adam(model.parameters())", why=RECIPE)
survivor("train_classifier", "split(40)", "split(41)", why=RECIPE)
survivor("train_classifier", "split(40)", "split(39)", why=RECIPE)
survivor("train_reader", "MultiHeadAttention(32, 2)", "MultiHeadAttention(32, 1)", why=CHOICES)
survivor("train_reader", "torch.manual_seed(seed)", "pass", why=CHOICES)


# -------------------------------------------- mistakes that a second collection of answers brought


@wrong(
    "DecoderLayer",
    says="Where there is no mask for the memory you use that of the self-attention; without a mask all of the memory "
    "is seen.",
)
class self_mask_for_the_memory(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, y, memory, self_mask=None, cross_mask=None):
        if cross_mask is None and self_mask is not None and (memory.shape[1] == y.shape[1]):
            cross_mask = self_mask
        q = self.norm1(y)
        y = y + self.self_attention(q, q, self_mask)[0]
        q = self.norm2(y)
        y = y + self.cross_attention(q, memory, cross_mask)[0]
        q = self.norm3(y)
        return y + self.linear2(nn.functional.relu(self.linear1(q)))


@wrong(
    "DecoderLayer",
    says="Your cross-attention asks with the stream as it is; it stands behind a norm like the other parts.",
)
class raw_stream_asks_the_memory(nn.Module):
    def __init__(self, d_model, n_heads, d_ff):
        super().__init__()
        self.self_attention = MultiHeadAttention(d_model, n_heads)
        self.cross_attention = MultiHeadAttention(d_model, n_heads)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm3 = nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, d_ff)
        self.linear2 = nn.Linear(d_ff, d_model)

    def forward(self, y, memory, self_mask=None, cross_mask=None):
        s = self.norm1(y)
        y = y + self.self_attention(s, s, self_mask)[0]
        y = y + self.cross_attention(y, memory, cross_mask)[0]
        y = y + self.linear2(torch.relu(self.linear1(self.norm3(self.norm2(y)))))
        return y


@wrong("teacher_forced_logits", says="You put the start symbol before the source as well; the source is read as it is.")
def begin_before_the_source(model, source, target, sos):
    B = len(target)
    first = target.new_full((B, 1), sos)
    prefix = torch.cat((first, target[:, :-1]), dim=1)
    source = torch.cat((first, source), dim=1)
    return model(source, prefix)


@wrong(
    "teacher_forced_logits",
    says="You return log-probabilities, and each is made from the last token alone; logits are asked for, made from "
    "all tokens before.",
)
def log_probabilities_of_the_last_token(model, source, target, sos):
    fed = torch.cat([torch.full((len(target), 1), sos), target[:, :-1]], dim=1)
    pieces = [model(source, token.unsqueeze(1))[:, 0] for token in fed.unbind(dim=1)]
    return torch.stack(pieces, dim=1).log_softmax(dim=-1)
