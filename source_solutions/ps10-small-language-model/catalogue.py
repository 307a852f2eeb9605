"""Right variants and misconceptions of ps10-small-language-model.

Each misconception carries the sentence that its author reads in the feedback.
"""

import itertools
import math
import re
from collections import Counter, defaultdict
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import nn

from autograder.catalogue import edited, right, survivor, wrong

if TYPE_CHECKING:  # the names of the notebook, which are there when this is read
    from the_notebook import (
        TRAIN,
        SmallModel,
        apply_merges,
        loss_of,
        sampling_numbers,
        turn,
    )

# ---------------------------------------------------------------------------------- exercise 1: apply_merges


@wrong(
    "apply_merges",
    says="A new token is glued to its neighbour in the same pass, so that runs of equal letters become one long token.",
)
def merges_again_in_the_same_pass(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        merged = []
        for token in tokens:
            if merged and merged[-1].endswith(left) and token == right_part:
                merged[-1] += right_part
            else:
                merged.append(token)
        tokens = merged
    return tokens


@wrong("apply_merges", says="Each merge is made once only; it holds wherever the pair stands.")
def merges_in_one_place(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        for i in range(len(tokens) - 1):
            if (tokens[i], tokens[i + 1]) == (left, right_part):
                tokens = [*tokens[:i], left + right_part, *tokens[i + 2 :]]
                break
    return tokens


@wrong(
    "apply_merges", says="You go through the text from right to left; in runs of equal letters it makes a difference."
)
def merges_from_the_right(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        i = len(tokens) - 2
        while i >= 0:
            if (tokens[i], tokens[i + 1]) == (left, right_part):
                tokens[i : i + 2] = [left + right_part]
                i -= 1
            i -= 1
    return tokens


@wrong(
    "apply_merges",
    says="You go through the text once, with all merges together; they are applied in their order, each to the whole "
    "text, on what the ones before have made.",
)
def merges_by_the_longest_token(text, merges):
    known = sorted({a + b for a, b in merges}, key=len, reverse=True)
    tokens, i = [], 0
    while i < len(text):
        token = next((t for t in known if text.startswith(t, i)), text[i])
        tokens.append(token)
        i += len(token)
    return tokens


@wrong(
    "apply_merges",
    says="You replace within one joined text, which does not see where tokens begin and end: a longer token that ends "
    "or begins like a part of the pair is merged, too.",
)
def merges_in_a_joined_text(text, merges):
    joined = "\u0001".join(text)
    for left, right_part in merges:
        joined = joined.replace(f"{left}\u0001{right_part}", left + right_part)
    return joined.split("\u0001") if text else []


@wrong(
    "apply_merges",
    says="You look for the letters of a pair in the text; what counts are the tokens as they are cut by then.",
)
def merges_letters(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        whole, merged, i = left + right_part, [], 0
        while i < len(tokens):
            taken = ""
            j = i
            while j < len(tokens) and len(taken) < len(whole):
                taken += tokens[j]
                j += 1
            if taken == whole:
                merged.append(whole)
                i = j
            else:
                merged.append(tokens[i])
                i += 1
        tokens = merged
    return tokens


@wrong("apply_merges", says="You apply the merges in the opposite order; the first of the list comes first.")
def merges_backwards(text, merges):
    tokens = list(text)
    for left, right_part in reversed(merges):
        merged = []
        for token in tokens:
            if merged and merged[-1] == left and token == right_part:
                merged[-1] = left + right_part
            else:
                merged.append(token)
        tokens = merged
    return tokens


@wrong("apply_merges", says="Spaces are lost in your tokens; they are characters like any other.")
def merges_without_spaces(text, merges):
    tokens = [character for character in text if character != " "]
    for left, right_part in merges:
        merged = []
        for token in tokens:
            if merged and merged[-1] == left and token == right_part:
                merged[-1] = left + right_part
            else:
                merged.append(token)
        tokens = merged
    return tokens


@wrong("apply_merges", says="The last token is missing wherever it is not merged: your loop ends one place too early.")
def merges_without_the_last(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        merged, i = [], 0
        while i < len(tokens) - 1:
            if (tokens[i], tokens[i + 1]) == (left, right_part):
                merged.append(left + right_part)
                i += 2
            else:
                merged.append(tokens[i])
                i += 1
        tokens = merged
    return tokens


@wrong("apply_merges", says="You merge each pair in either order; ('t', 'h') says that t comes first.")
def merges_in_either_order(text, merges):
    tokens = list(text)
    for left, right_part in merges:
        merged = []
        for token in tokens:
            if merged and (merged[-1], token) in ((left, right_part), (right_part, left)):
                merged[-1] += token
            else:
                merged.append(token)
        tokens = merged
    return tokens


@right("apply_merges")
def merges_with_an_index(text, merges):
    tokens = [*text]
    for pair in merges:
        i, merged = 0, []
        while i < len(tokens):
            found = i + 1 < len(tokens) and tokens[i] == pair[0] and tokens[i + 1] == pair[1]
            merged += ["".join(pair)] if found else [tokens[i]]
            i += 2 if found else 1
        tokens = merged
    return tokens


@right("apply_merges")
def merges_in_place(text, merges):
    tokens = list(text)
    for a, b in merges:
        i = 0
        while i < len(tokens) - 1:
            if tokens[i] == a and tokens[i + 1] == b:
                tokens[i] = a + b
                del tokens[i + 1]
            i += 1
    return tuple(tokens)


@right("apply_merges")
def merges_by_replacing(text, merges):
    if not text:
        return []
    line = "\0" + "\0".join(text) + "\0"
    for a, b in merges:
        line = re.sub(f"(?<=\0){re.escape(a)}\0{re.escape(b)}(?=\0)", lambda _, new=a + b: new, line)
    return line[1:-1].split("\0")


# ----------------------------------------------------------------------------- exercise 2: byte_pair_merges


@wrong(
    "byte_pair_merges",
    says="You count once and take the most frequent pairs of that count; after each merge the text has to be cut and "
    "counted anew.",
)
def pairs_counted_once(text, n_merges):
    counts = Counter(itertools.pairwise(text))
    return [pair for pair, n in counts.most_common(n_merges) if n > 1]


edited(
    "byte_pair_merges",
    "pairs_that_occur_once",
    "counts[pair] == 1",
    "False",
    says="You go on with pairs that occur only once; it ends as soon as no pair occurs twice.",
)
edited(
    "byte_pair_merges",
    "pairs_that_occur_twice_left_out",
    "counts[pair] == 1",
    "counts[pair] <= 2",
    says="You stop too early: a pair that occurs twice is still merged.",
)
edited(
    "byte_pair_merges",
    "pairs_last_of_equal_ones",
    "max(counts, key=counts.get, default=None)",
    "max(reversed(list(counts)), key=counts.get, default=None)",
    says="Of equally frequent pairs you take the last one; the first in the text is asked for.",
)
edited(
    "byte_pair_merges",
    "pairs_by_the_alphabet",
    "max(counts, key=counts.get, default=None)",
    "max(sorted(counts), key=counts.get, default=None)",
    says="Of equally frequent pairs you take the first in the alphabet; the first in the text is asked for.",
)
edited(
    "byte_pair_merges",
    "pairs_by_the_alphabet_from_its_end",
    "max(counts, key=counts.get, default=None)",
    "max(counts, key=lambda p: (counts[p], p), default=None)",
    says="Of equally frequent pairs you take the last in the alphabet; the first in the text is asked for.",
)
edited(
    "byte_pair_merges",
    "pairs_that_are_rarest",
    "max(counts, key=counts.get, default=None)",
    "min((p for p in counts if counts[p] > 1), key=counts.get, default=None)",
    says="You merge the rarest pair; the most frequent one is asked for.",
)
edited(
    "byte_pair_merges",
    "pairs_by_the_length_they_cover",
    "key=counts.get",
    "key=lambda p: counts[p] * len(p[0] + p[1])",
    says="You weigh a pair by its length; only how often it occurs counts.",
)
edited(
    "byte_pair_merges",
    "pairs_as_texts",
    "merges.append(pair)",
    "merges.append(pair) if len(merges) < n_merges - 1 else merges.append(pair[0] + pair[1])",
    says="You return a glued text where a pair of its two parts is asked for.",
)
edited(
    "byte_pair_merges",
    "pairs_one_too_few",
    "range(n_merges)",
    "range(n_merges - 1)",
    says="You return one merge too few.",
)
edited(
    "byte_pair_merges",
    "pairs_one_too_many",
    "range(n_merges)",
    "range(n_merges + 1)",
    says="You return one merge too many.",
)
edited(
    "byte_pair_merges",
    "pairs_within_words",
    "Counter(itertools.pairwise(tokens))",
    "Counter(p for p in itertools.pairwise(tokens) if ' ' not in p[0] + p[1])",
    says="You leave out pairs with a space; here a space is a character like any other.",
)
edited(
    "byte_pair_merges",
    "pairs_of_different_tokens",
    "Counter(itertools.pairwise(tokens))",
    "Counter(p for p in itertools.pairwise(tokens) if p[0] != p[1])",
    says="You never merge two equal tokens; they are a pair like any other.",
)
edited(
    "byte_pair_merges",
    "pairs_without_order",
    "Counter(itertools.pairwise(tokens))",
    "Counter(tuple(sorted(p)) for p in itertools.pairwise(tokens))",
    says="You count a pair and its reverse as one; the order of the two tokens matters.",
)
edited(
    "byte_pair_merges",
    "pairs_side_by_side",
    "Counter(itertools.pairwise(tokens))",
    "Counter(zip(tokens[::2], tokens[1::2], strict=False))",
    says="You cut the text into pairs that do not overlap; every place counts, also that between two pairs.",
)


@wrong(
    "byte_pair_merges",
    says="You count in a run of equal letters only what can be merged; every place counts: aaa holds a, a twice.",
)
def pairs_without_overlaps(text, n_merges):
    merges = []
    for _ in range(n_merges):
        tokens, counts, taken = apply_merges(text, merges), Counter(), -1
        for i in range(len(tokens) - 1):
            pair = tokens[i], tokens[i + 1]
            if i == taken and pair == (tokens[i - 1], tokens[i]):
                counts[pair] += 0
                continue
            counts[pair] += 1
            taken = i + 1
        if not counts or max(counts.values()) < 2:
            break
        merges.append(max(counts, key=counts.get))
    return merges


@right("byte_pair_merges")
def pairs_in_a_dict(text, n_merges):
    tokens, merges = list(text), []
    while len(merges) < n_merges:
        counts = {}
        for i in range(1, len(tokens)):
            pair = (tokens[i - 1], tokens[i])
            counts[pair] = counts.get(pair, 0) + 1
        best, most = None, 1
        for pair, n in counts.items():
            if n > most:
                best, most = pair, n
        if best is None:
            return merges
        merges.append(best)
        merged, i = [], 0
        while i < len(tokens):
            if tuple(tokens[i : i + 2]) == best:
                merged.append("".join(best))
                i += 2
            else:
                merged.append(tokens[i])
                i += 1
        tokens = merged
    return merges


@right("byte_pair_merges")
def pairs_as_lists(text, n_merges):
    merges = []
    for _ in range(n_merges):
        tokens = list(apply_merges(text, merges))
        places = defaultdict(list)
        for i in range(len(tokens) - 1):
            places[tokens[i], tokens[i + 1]].append(i)
        often = [(-len(where), where[0], pair) for pair, where in places.items() if len(where) >= 2]
        if not often:
            break
        merges.append(list(min(often)[2]))
    return merges


# ------------------------------------------------------------------------------ exercise 3: next_token_loss

LOSS = "return nn.functional.cross_entropy(logits[:, :-1].flatten(0, 1), tokens[:, 1:].flatten())"

edited(
    "next_token_loss",
    "loss_not_shifted",
    LOSS,
    "return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.flatten())",
    says="Yours compares each place with the very token that stands there, which the model has read; the next one is "
    "to be predicted.",
)
edited(
    "next_token_loss",
    "loss_reshaped_for_transposed",
    LOSS,
    "return nn.functional.cross_entropy(logits[:, :-1].reshape(len(logits), logits.shape[2], -1), tokens[:, 1:])",
    says="You reshape the logits where their axes should be exchanged. Reshaping keeps the order of the numbers and "
    "mixes places and tokens.",
)
edited(
    "next_token_loss",
    "loss_shifted_the_other_way",
    LOSS,
    "return nn.functional.cross_entropy(logits[:, 1:].flatten(0, 1), tokens[:, :-1].flatten())",
    says="You compare each place with the token before it; logits[:, t] speak of tokens[:, t + 1].",
)
edited(
    "next_token_loss",
    "loss_shifted_twice",
    LOSS,
    "return nn.functional.cross_entropy(logits[:, :-2].flatten(0, 1), tokens[:, 2:].flatten()) if logits.shape[1] > 2 "
    "else logits.sum() * 0",
    says="You compare each place with the token after the next one.",
)
edited(
    "next_token_loss",
    "loss_wrapped_around",
    LOSS,
    "return nn.functional.cross_entropy(logits.flatten(0, 1), tokens.roll(-1, 1).flatten())",
    says="Your last place is compared with the first token (roll goes in a circle); the last place is not judged.",
)
edited(
    "next_token_loss",
    "loss_summed",
    "tokens[:, 1:].flatten())",
    "tokens[:, 1:].flatten(), reduction='sum')",
    says="You return the sum of the losses; their mean is asked for.",
)
edited(
    "next_token_loss",
    "loss_summed_over_places",
    LOSS,
    LOSS + " * (logits.shape[1] - 1)",
    says="You take the mean over the sequences but the sum over the places; the mean over both is asked for.",
)
edited(
    "next_token_loss",
    "loss_divided_by_all_tokens",
    LOSS,
    LOSS + " * (logits.shape[1] - 1) / logits.shape[1]",
    says="You divide by the number of tokens; there is one prediction fewer in each sequence.",
)
edited(
    "next_token_loss",
    "loss_of_probabilities",
    "logits[:, :-1].flatten(0, 1)",
    "logits[:, :-1].softmax(dim=2).flatten(0, 1)",
    says="The softmax is taken twice: cross_entropy wants the logits as they are.",
)
edited(
    "next_token_loss",
    "loss_in_bits",
    LOSS,
    LOSS + " / math.log(2)",
    says="Your loss is in bits (log2); nats are asked for.",
)
edited(
    "next_token_loss",
    "loss_with_the_wrong_sign",
    LOSS,
    LOSS.replace("return ", "return -"),
    says="The sign is the other way round: the loss is minus the logarithm, so it is never negative.",
)
edited(
    "next_token_loss",
    "loss_of_the_last_prediction",
    LOSS,
    "return nn.functional.cross_entropy(logits[:, -2], tokens[:, -1])",
    says="You judge the last prediction of each sequence only; all of them count.",
)
edited(
    "next_token_loss",
    "loss_of_the_logits_themselves",
    LOSS,
    "return -logits[:, :-1].gather(2, tokens[:, 1:, None]).mean()",
    says="You take the logit of the right token for the logarithm of its probability; the logarithm of the sum of all "
    "powers is missing.",
)
edited(
    "next_token_loss",
    "loss_softmax_over_places",
    LOSS,
    "return -logits[:, :-1].log_softmax(dim=1).gather(2, tokens[:, 1:, None]).mean()",
    says="Your softmax runs over the places; the probabilities of the V tokens at one place sum to 1.",
)
edited(
    "next_token_loss",
    "loss_that_overflows",
    LOSS,
    "return -(logits[:, :-1].softmax(dim=2).gather(2, tokens[:, 1:, None])).log().mean()",
    says="With large logits the probability of the right token becomes 0 and its logarithm infinite; take log_softmax.",
)
edited(
    "next_token_loss",
    "loss_of_powers",
    LOSS,
    "return (logits[:, :-1].exp().sum(2).log() - logits[:, :-1].gather(2, tokens[:, 1:, None])[..., 0]).mean()",
    says="Your powers of large logits overflow; subtract the largest logit first, or take log_softmax.",
)
edited(
    "next_token_loss",
    "loss_without_gradient",
    LOSS,
    LOSS + ".detach()",
    says="Your loss is cut off from the logits (detach, .item() or no_grad), so nothing can be learned from it.",
)


@right("next_token_loss")
def loss_by_gather(logits, tokens):
    log_chances = torch.log_softmax(logits, dim=-1)
    found = log_chances[:, :-1].gather(2, tokens[:, 1:].unsqueeze(2))
    return found.mean().neg()


@right("next_token_loss")
def loss_with_classes_second(logits, tokens):
    return nn.CrossEntropyLoss()(logits[:, : logits.shape[1] - 1].transpose(1, 2), tokens[:, 1:])


@right("next_token_loss")
def loss_in_a_loop(logits, tokens):
    total = 0
    for b in range(logits.shape[0]):
        for t in range(logits.shape[1] - 1):
            row = logits[b, t]
            total = total + row.logsumexp(0) - row[tokens[b, t + 1]]
    return total / (logits.shape[0] * (logits.shape[1] - 1))


# ---------------------------------------------------------------------------------- exercise 4: perplexity

WHOLE = "np.exp(np.sum(losses * counts) / np.sum(counts))"

edited(
    "perplexity",
    "perplexity_of_equal_pieces",
    WHOLE,
    "np.exp(np.mean(losses))",
    says="All pieces weigh the same in yours; a long piece has more tokens and weighs more.",
)
edited(
    "perplexity",
    "perplexity_as_a_mean_of_perplexities",
    WHOLE,
    "np.sum(np.exp(losses) * counts) / np.sum(counts)",
    says="You average perplexities; the losses are averaged, and the exponential comes last.",
)
edited(
    "perplexity",
    "perplexity_as_a_plain_mean_of_perplexities",
    WHOLE,
    "np.mean(np.exp(losses))",
    says="You average the pieces' perplexities, all with the same weight; average the losses of all tokens first.",
)
edited(
    "perplexity",
    "perplexity_in_bits",
    WHOLE,
    "2 ** (np.sum(losses * counts) / np.sum(counts))",
    says="You raise 2 to the power of a loss in nats; the base belongs to the logarithm: e.",
)
edited(
    "perplexity",
    "perplexity_without_exponential",
    WHOLE,
    "np.sum(losses * counts) / np.sum(counts)",
    says="You return the mean loss; the perplexity is its exponential.",
)
edited(
    "perplexity",
    "perplexity_not_divided",
    WHOLE,
    "np.exp(np.sum(losses * counts) / len(counts))",
    says="You divide by the number of pieces; the mean loss is per token.",
)
edited(
    "perplexity",
    "perplexity_of_sums",
    WHOLE,
    "np.exp(np.sum(losses) / np.sum(counts))",
    says="Your losses are already means: multiply each by its number of tokens before you add them.",
)


edited(
    "perplexity",
    "perplexity_by_the_mean_length",
    WHOLE,
    "np.exp(np.sum(losses * counts) / np.mean(counts))",
    says="You divide by the mean number of tokens of a piece; divide by the number of all tokens.",
)
edited(
    "perplexity",
    "perplexity_by_the_longest_piece",
    WHOLE,
    "np.exp(np.sum(losses * counts / counts.max()) / len(counts))",
    says="Your weights do not sum to 1: they are shares of the longest piece, divided by the number of pieces. Divide "
    "by the number of all tokens.",
)


@right("perplexity")
def perplexity_as_a_product(losses, counts):
    share = counts / counts.sum()
    return float(np.prod(np.exp(losses) ** share))


@right("perplexity")
def perplexity_token_by_token(losses, counts):
    everyone = [loss for loss, n in zip(losses, counts, strict=True) for _ in range(int(n))]
    return math.exp(sum(everyone) / len(everyone))


# ------------------------------------------------------------------------------ exercise 5: sampling_answers

edited(
    "sampling_answers",
    "sheet_warm_for_cold",
    '"cold": counts**2 / np.sum(counts**2)',
    '"cold": counts**0.5 / np.sum(counts**0.5)',
    says="Your probabilities are those of temperature 2: to divide the logits by ½ squares the counts.",
)
edited(
    "sampling_answers",
    "sheet_cold_counts_halved",
    '"cold": counts**2 / np.sum(counts**2)',
    '"cold": counts / np.sum(counts)',
    says="Your probabilities at temperature ½ are those at temperature 1: the temperature divides the logits, not the "
    "probabilities.",
)
edited(
    "sampling_answers",
    "sheet_cold_softmax_of_counts",
    '"cold": counts**2 / np.sum(counts**2)',
    '"cold": np.exp(2.0 * counts) / np.sum(np.exp(2.0 * counts))',
    says="You take the counts for the logits; the logits are their logarithms.",
)
edited(
    "sampling_answers",
    "sheet_top_p_without_the_crossing_token",
    "for n in (2, 3))",
    "for n in (2, 2))",
    says="In your top-p the token with which the threshold is reached is left out; it stays.",
)
edited(
    "sampling_answers",
    "sheet_top_p_one_too_many",
    "for n in (2, 3))",
    "for n in (2, 4))",
    says="Your top-p keeps one token too many: the threshold was reached before.",
)
edited(
    "sampling_answers",
    "sheet_sorted_by_chance",
    "np.where(np.isin(np.arange(5), best[:n]), counts, 0)",
    "np.where(np.arange(5) < n, np.sort(counts)[::-1], 0)",
    says="The probabilities you keep stand in the order from the likeliest on; each belongs to its token's number.",
)
edited(
    "sampling_answers",
    "sheet_in_the_order_of_numbers",
    "best = np.argsort(-counts)",
    "best = np.arange(5)",
    says="You keep the first tokens in the order of their numbers; the likeliest ones stay.",
)
edited(
    "sampling_answers",
    "sheet_top_k_by_the_smallest",
    '"top_k": two / two.sum()',
    '"top_k": np.where(np.isin(np.arange(5), best[3:]), counts, 0) / counts[best[3:]].sum()',
    says="You keep the two unlikeliest tokens; the likeliest stay.",
)
edited(
    "sampling_answers",
    "sheet_top_k_made_equal",
    '"top_k": two / two.sum()',
    '"top_k": (two > 0) / 2',
    says="You give the kept tokens the same probability; they keep their proportions.",
)
edited(
    "sampling_answers",
    "sheet_mean_of_inverse_chances",
    "np.prod(chances) ** (-1 / 3)",
    "np.mean(1 / np.array(chances))",
    says="You average 1/p of the tokens; the perplexity is the exponential of the mean of -ln p, a geometric mean.",
)
edited(
    "sampling_answers",
    "sheet_inverse_of_the_mean_chance",
    "np.prod(chances) ** (-1 / 3)",
    "1 / np.mean(chances)",
    says="You average the chances; average their logarithms.",
)
edited(
    "sampling_answers",
    "sheet_perplexity_of_the_whole",
    "np.prod(chances) ** (-1 / 3)",
    "1 / np.prod(chances)",
    says="You give one over the probability of the whole text; the perplexity is per token (the third root of it).",
)
edited(
    "sampling_answers",
    "sheet_loss_for_perplexity",
    "np.prod(chances) ** (-1 / 3)",
    "-np.mean(np.log(chances))",
    says="You give the mean loss; the perplexity is its exponential.",
)


@right("sampling_answers")
def sheet_of_rounded_lists(student_id):
    counts, top_p, chances = sampling_numbers(student_id)
    share = counts / counts.sum()

    def kept(n):
        least = sorted(counts)[-n]
        left = [c if c >= least else 0 for c in counts.tolist()]
        return [round(c / sum(left), 3) for c in left]

    n = next(n for n in range(1, 6) if sum(sorted(share)[-n:]) >= top_p)
    return {
        "cold": [round(s**2 / sum(share**2), 3) for s in share],
        "top_k": kept(2),
        "top_p": kept(n),
        "perplexity": round(math.exp(sum(-math.log(p) for p in chances) / 3), 3),
    }


# ------------------------------------------------------------------------- exercise 6: sampling_distribution

edited(
    "sampling_distribution",
    "sampling_multiplied_by_temperature",
    "(logits[order[:top_k]] - logits[order[0]]) / temperature",
    "(logits[order[:top_k]] - logits[order[0]]) * temperature",
    says="You multiply by the temperature; a low temperature makes the largest logit win more clearly, so divide.",
)
edited(
    "sampling_distribution",
    "sampling_without_temperature",
    "(logits[order[:top_k]] - logits[order[0]]) / temperature",
    "logits[order[:top_k]] - logits[order[0]]",
    says="Your probabilities do not depend on the temperature.",
)
edited(
    "sampling_distribution",
    "sampling_one_token_more_for_top_k",
    "logits[order[:top_k]]",
    "logits[order[: None if top_k is None else top_k + 1]]",
    says="Your top-k keeps one token too many.",
)
edited(
    "sampling_distribution",
    "sampling_without_the_crossing_token",
    "reached_before = np.cumsum(kept) - kept >= top_p",
    "reached_before = (np.cumsum(kept) > top_p) & (np.arange(len(kept)) > 0)",
    says="The token with which top_p is reached is cut off in yours; it stays.",
)
edited(
    "sampling_distribution",
    "sampling_one_token_more_for_top_p",
    "reached_before = np.cumsum(kept) - kept >= top_p",
    "reached_before = np.concatenate([[False, False], np.cumsum(kept) >= top_p])[: len(kept)]",
    says="Your top-p keeps one token too many: the one with which the threshold is reached is the last that stays.",
)
edited(
    "sampling_distribution",
    "sampling_top_p_as_a_threshold",
    "reached_before = np.cumsum(kept) - kept >= top_p",
    "reached_before = (kept < 1 - top_p) & (np.arange(len(kept)) > 0)",
    says="You compare single probabilities with the threshold; top-p is about the sum of the likeliest ones.",
)
edited(
    "sampling_distribution",
    "sampling_not_renormalised",
    "kept = np.where(reached_before, 0, kept) / kept[~reached_before].sum()",
    "kept = np.where(reached_before, 0, kept)",
    says="After top-p your probabilities do not sum to 1: divide what stays by its sum.",
)
edited(
    "sampling_distribution",
    "sampling_top_p_ignored",
    "if top_p is not None:",
    "if top_p is None and False:",
    says="Your result does not depend on top_p.",
)
edited(
    "sampling_distribution",
    "sampling_top_k_ignored",
    "logits[order[:top_k]]",
    "logits[order]",
    says="Your result does not depend on top_k.",
)
edited(
    "sampling_distribution",
    "sampling_last_of_equal_ones",
    'order = np.argsort(-logits, kind="stable")',
    'order = np.argsort(logits, kind="stable")[::-1]',
    says="Of equally likely tokens yours keeps those with larger numbers; smaller numbers come first.",
)
edited(
    "sampling_distribution",
    "sampling_sorted_result",
    "chances[order[: len(kept)]] = kept",
    "chances[: len(kept)] = kept",
    says="Your probabilities stand sorted; entry i belongs to token i. Undo the sorting.",
)
edited(
    "sampling_distribution",
    "sampling_sorted_where_cut",
    "chances[order[: len(kept)]] = kept",
    "chances[order if top_k is None and top_p is None else np.arange(len(kept))] = kept",
    says="With `top_k` or `top_p` your probabilities stand sorted; entry i belongs to token i. Undo the sorting.",
)
edited(
    "sampling_distribution",
    "sampling_unstable",
    "scaled = (logits[order[:top_k]] - logits[order[0]]) / temperature",
    "scaled = logits[order[:top_k]] / temperature",
    says="Your powers overflow where logits are large or the temperature is small; subtract the largest logit first.",
)
edited(
    "sampling_distribution",
    "sampling_cold_for_all_equal_ones",
    "chances[order[0]] = 1",
    "chances[logits == logits.max()] = 1 / (logits == logits.max()).sum()",
    says="At temperature 0 you share the probability among equal logits; the first of them gets all.",
)
edited(
    "sampling_distribution",
    "sampling_temperature_zero_as_none",
    "chances[order[0]] = 1",
    "chances = np.exp(logits - logits.max()) / np.exp(logits - logits.max()).sum()",
    says="Your temperature 0 is that of temperature 1; it means that the largest logit takes all.",
)


@wrong(
    "sampling_distribution",
    says="Your top-p looks at the probabilities before top-k; it comes after, on what is left and divided by its sum.",
)
def sampling_top_p_of_all_tokens(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    chances = np.zeros(len(logits))
    if temperature == 0:
        chances[order[0]] = 1
        return chances
    powers = np.exp((logits[order] - logits[order[0]]) / temperature)
    kept = powers / powers.sum()
    stays = np.ones(len(kept), dtype=bool)
    if top_p is not None:
        stays = np.cumsum(kept) - kept < top_p
    if top_k is not None:
        stays[top_k:] = False
    kept = np.where(stays, kept, 0)
    chances[order] = kept / kept.sum()
    return chances


@wrong(
    "sampling_distribution",
    says="Your top-p is chosen at temperature 1; the temperature comes first, so that top-p sees the tempered chances.",
)
def sampling_temperature_last(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    chances = np.zeros(len(logits))
    if temperature == 0:
        chances[order[0]] = 1
        return chances
    ahead = (logits[order] - logits[order[0]])[:top_k]
    kept = np.exp(ahead) / np.exp(ahead).sum()
    stays = np.ones(len(kept), dtype=bool) if top_p is None else np.cumsum(kept) - kept < top_p
    powers = np.where(stays, np.exp(ahead / temperature), 0)
    chances[order[: len(powers)]] = powers / powers.sum()
    return chances


@wrong(
    "sampling_distribution",
    says="Your top-k compares with the k-th largest logit, so that of equal ones more than k stay; those with smaller "
    "numbers come first.",
)
def sampling_more_than_k_of_equal_ones(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    chances = np.zeros(len(logits))
    if temperature == 0:
        chances[order[0]] = 1
        return chances
    ahead = logits[order] - logits[order[0]]
    if top_k is not None:
        ahead = np.where(ahead >= ahead[min(top_k, len(ahead)) - 1], ahead, -np.inf)
    kept = np.exp(ahead / temperature)
    kept /= kept.sum()
    if top_p is not None:
        kept = np.where(np.cumsum(kept) - kept < top_p, kept, 0)
    chances[order] = kept / kept.sum()
    return chances


@wrong(
    "sampling_distribution",
    says="Tokens that do not stay have the logit 0 in yours, which is not the probability 0; their logit is −∞.",
)
def sampling_dropped_logits_become_zero(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    if temperature == 0:
        return np.eye(len(logits))[order[0]]
    scaled = logits / temperature
    if top_k is not None:
        scaled = np.where(np.isin(np.arange(len(logits)), order[:top_k]), scaled, 0.0)
    powers = np.exp(scaled - scaled.max())
    chances = powers / powers.sum()
    if top_p is not None:
        order = np.argsort(-chances, kind="stable")
        ranked = chances[order]
        chances = np.zeros(len(logits))
        chances[order] = np.where(np.cumsum(ranked) - ranked < top_p, ranked, 0)
    return chances / chances.sum()


@wrong("sampling_distribution", says="Your function changes the logits that it is given; work on a copy of them.")
def sampling_in_place(logits, temperature=1.0, top_k=None, top_p=None):
    order = np.argsort(-logits, kind="stable")
    chances = np.zeros(len(logits))
    if temperature == 0:
        chances[order[0]] = 1
        return chances
    logits -= logits[order[0]]
    logits /= temperature
    kept = np.exp(logits[order[:top_k]])
    kept = kept / kept.sum()
    if top_p is not None:
        kept = np.where(np.cumsum(kept) - kept < top_p, kept, 0)
    chances[order[: len(kept)]] = kept / kept.sum()
    return chances


@wrong("sampling_distribution", says="You return the number of a token; the probabilities of all tokens are asked for.")
def sampling_draws_a_token(logits, temperature=1.0, top_k=None, top_p=None):
    return int(np.argmax(logits))


@right("sampling_distribution")
def sampling_with_ranks(logits, temperature=1.0, top_k=None, top_p=None):
    logits = np.array(logits, dtype=np.float64)
    V = len(logits)
    if temperature == 0:
        return [float(i == int(np.argmax(logits))) for i in range(V)]
    ranks = np.empty(V, dtype=int)
    ranks[sorted(range(V), key=lambda i: -logits[i])] = np.arange(V)
    keep = ranks < (V if top_k is None else top_k)
    chances = np.where(keep, np.exp((logits - logits.max()) / temperature), 0.0)
    chances /= chances.sum()
    if top_p is not None:
        total = 0.0
        for i in np.argsort(ranks):
            if total >= top_p:
                chances[i] = 0.0
            total += chances[i]
        chances /= chances.sum()
    return chances


@right("sampling_distribution")
def sampling_in_torch(logits, temperature=1.0, top_k=None, top_p=None):
    z = torch.tensor(np.array(logits, dtype=np.float64))
    if temperature == 0:
        return nn.functional.one_hot(z.argmax(), len(z)).double()
    z = (z - z.max()) / temperature
    ranked, order = z.sort(descending=True, stable=True)
    if top_k is not None:
        ranked[top_k:] = -torch.inf
    chances = ranked.softmax(0)
    if top_p is not None:
        chances[1:][chances.cumsum(0)[:-1] >= top_p] = 0
        chances = chances / chances.sum()
    return torch.zeros_like(z).scatter(0, order, chances)


# ----------------------------------------------------------------------------- exercise 7: grouped_attention

edited(
    "grouped_attention",
    "grouped_in_turns",
    "np.repeat(array, h // K.shape[1], axis=1)",
    "np.tile(array, (1, h // K.shape[1], 1, 1))",
    says="Your query heads take the key heads in turns (0, 1, 0, 1, …); neighbours share (0, 0, 1, 1, …).",
)
edited(
    "grouped_attention",
    "grouped_first_head_only",
    "np.repeat(array, h // K.shape[1], axis=1)",
    "np.repeat(array[:, :1], h, axis=1)",
    says="All your query heads look into the first head of keys and values; each group has its own.",
)
edited(
    "grouped_attention",
    "grouped_mean_of_heads",
    "np.repeat(array, h // K.shape[1], axis=1)",
    "np.repeat(array.mean(axis=1, keepdims=True), h, axis=1)",
    says="You average the heads of keys and values; each group of query heads uses one of them.",
)
edited(
    "grouped_attention",
    "grouped_not_causal",
    "scores = np.where(np.tri(T, dtype=bool), scores, -np.inf)",
    "pass",
    says="Your tokens see later ones; token t sees tokens 0 to t.",
)
edited(
    "grouped_attention",
    "grouped_mask_the_other_way",
    "np.tri(T, dtype=bool)",
    "np.tri(T, dtype=bool).T",
    says="Your mask is the other way round: a token sees itself and later ones.",
)
edited(
    "grouped_attention",
    "grouped_without_itself",
    "np.tri(T, dtype=bool)",
    "np.tri(T, k=-1, dtype=bool) | (np.arange(T) == 0) & (np.arange(T)[:, None] == 0)",
    says="Your tokens do not see themselves; the causal mask includes the diagonal.",
)
edited(
    "grouped_attention",
    "grouped_not_scaled",
    "Q @ K.swapaxes(2, 3) / np.sqrt(d)",
    "Q @ K.swapaxes(2, 3)",
    says="Your scores are not divided by the root of d.",
)
edited(
    "grouped_attention",
    "grouped_scaled_by_d_model",
    "Q @ K.swapaxes(2, 3) / np.sqrt(d)",
    "Q @ K.swapaxes(2, 3) / np.sqrt(h * d)",
    says="You divide by the root of the width of all heads together; a head compares vectors of width d.",
)
edited(
    "grouped_attention",
    "grouped_scaled_by_d",
    "Q @ K.swapaxes(2, 3) / np.sqrt(d)",
    "Q @ K.swapaxes(2, 3) / d",
    says="You divide the scores by d; it is the root of d.",
)
edited(
    "grouped_attention",
    "grouped_finite_mask",
    "scores, -np.inf)",
    "scores, -1e4)",
    says="Masked scores are −10,000 in yours, and real ones may be as low; take −∞.",
)
edited(
    "grouped_attention",
    "grouped_masked_with_zero",
    "scores, -np.inf)",
    "scores, 0)",
    says="You set the scores of later tokens to 0, which is a score like any other; they have to be −∞.",
)
edited(
    "grouped_attention",
    "grouped_overflow",
    "powers = np.exp(scores - scores.max(axis=3, keepdims=True))",
    "powers = np.exp(scores)",
    says="Large scores overflow in your softmax; subtract the largest score of each row first.",
)
edited(
    "grouped_attention",
    "grouped_maximum_over_later_tokens",
    "powers = np.exp(scores - scores.max(axis=3, keepdims=True))",
    "powers = np.exp(scores - (Q @ K.swapaxes(2, 3) / np.sqrt(d)).max(axis=3, keepdims=True))",
    says="You subtract the largest of all scores, those of later tokens included; where theirs is much larger, all "
    "powers of a row become 0. Mask first, then look for the largest.",
)
edited(
    "grouped_attention",
    "grouped_softmax_over_queries",
    "return powers / powers.sum(axis=3, keepdims=True) @ V",
    "return powers / powers.sum(axis=2, keepdims=True) @ V",
    says="Your weights sum to 1 over the queries; those of a query, over its keys, sum to 1.",
)


@wrong(
    "grouped_attention",
    says="You mask the weights after the softmax, so that those of a query no longer sum to 1; mask the scores.",
)
def grouped_masked_after_the_softmax(Q, K, V):
    _, h, T, d = Q.shape
    K, V = (np.repeat(array, h // K.shape[1], axis=1) for array in (K, V))
    scores = Q @ K.swapaxes(2, 3) / np.sqrt(d)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return powers / powers.sum(axis=3, keepdims=True) * np.tri(T) @ V


@wrong(
    "grouped_attention",
    says="Your keys are dealt out to neighbours and your values in turns; both belong to the same groups.",
)
def grouped_values_in_turns(Q, K, V):
    _, h, T, d = Q.shape
    K, V = np.repeat(K, h // K.shape[1], axis=1), np.tile(V, (1, h // V.shape[1], 1, 1))
    scores = np.where(np.tri(T, dtype=bool), Q @ K.swapaxes(2, 3) / np.sqrt(d), -np.inf)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return powers / powers.sum(axis=3, keepdims=True) @ V


@wrong(
    "grouped_attention",
    says="Two things: your scores are divided by d, where its root belongs; and neighbours that share keys and values "
    "are g at a time in yours, where they are h / g.",
)
def grouped_by_g_and_scaled_by_d(Q, K, V):
    _, h, T, d = Q.shape
    g = K.shape[1]
    K, V = (array[:, np.minimum(np.arange(h) // g, g - 1)] for array in (K, V))
    scores = np.where(np.tri(T, dtype=bool), Q @ K.swapaxes(2, 3) / d, -np.inf)
    powers = np.exp(scores - scores.max(axis=3, keepdims=True))
    return powers / powers.sum(axis=3, keepdims=True) @ V


@right("grouped_attention")
def grouped_with_an_axis_of_groups(Q, K, V):
    B, h, T, d = Q.shape
    g = K.shape[1]
    scores = np.einsum("bgsqd,bgkd->bgsqk", Q.reshape(B, g, h // g, T, d), K) / d**0.5
    scores[..., np.triu_indices(T, 1)[0], np.triu_indices(T, 1)[1]] = -np.inf
    scores = scores - scores.max(axis=-1, keepdims=True)
    weights = np.exp(scores)
    weights /= weights.sum(axis=-1, keepdims=True)
    return np.einsum("bgsqk,bgkd->bgsqd", weights, V).reshape(B, h, T, d)


@right("grouped_attention")
def grouped_in_loops(Q, K, V):
    B, h, T, d = Q.shape
    size = h // K.shape[1]
    output = np.zeros((B, h, T, d))
    for b in range(B):
        for i in range(h):
            for t in range(T):
                scores = K[b, i // size, : t + 1] @ Q[b, i, t] / math.sqrt(d)
                powers = np.exp(scores - scores.max())
                output[b, i, t] = powers / powers.sum() @ V[b, i // size, : t + 1]
    return output


@right("grouped_attention")
def grouped_by_the_library(Q, K, V):
    q, k, v = (torch.tensor(np.array(array)) for array in (Q, K, V))
    return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True, enable_gqa=True)


# ------------------------------------------------------------------------------ exercise 8: CachedAttention

MASK = "may = places[:, None] >= torch.arange(k.shape[2])"
WEIGHTS = "weights = scores.masked_fill(~may, -torch.inf).softmax(dim=3)"
ANSWER = "return self.W_O((weights @ values).transpose(1, 2).flatten(2)), (k, v)"


@wrong(
    "CachedAttention",
    says="Your places begin at 0 in each call; with a cache the first new token has the place T_before.",
    based_on="CachedAttention",
)
class cached_places_begin_anew:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        q = self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)
        k = self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        q, k = turn(q, torch.arange(T_new)), turn(k, torch.arange(T_new))
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        may = torch.ones(T_new, k.shape[2], dtype=torch.bool).tril(T_before)
        weights = scores.masked_fill(~may, -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


@wrong(
    "CachedAttention",
    says="With a cache your first new token gets the place of the last old one: its place is T_before, counted from 0.",
    based_on="CachedAttention",
)
class cached_places_one_too_small:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + max(T_before - 1, 0)
        q = self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)
        k = self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        q, k = turn(q, places), turn(k, places)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        may = torch.ones(T_new, k.shape[2], dtype=torch.bool).tril(T_before)
        weights = scores.masked_fill(~may, -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


@wrong(
    "CachedAttention",
    says="You turn the keys of the cache once more in each call; what was turned when it came stays as it is.",
    based_on="CachedAttention",
)
class cached_keys_turned_again:
    def forward(self, x, cache=None):
        T_before = 0 if cache is None else cache[0].shape[2]
        q = self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)
        k = self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        places = torch.arange(k.shape[2])
        q, k = turn(q, places[T_before:]), turn(k, places)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        may = places[T_before:, None] >= places
        weights = scores.masked_fill(~may, -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


edited(
    "CachedAttention",
    "cached_queries_not_turned",
    "q = turn(q, places)",
    "pass",
    says="Your queries are not turned; only then do scores depend on the distance of two tokens.",
)
edited(
    "CachedAttention",
    "cached_keys_not_turned",
    "k = turn(k, places)",
    "pass",
    says="Your keys are not turned; queries and keys both are.",
)
edited(
    "CachedAttention",
    "cached_values_turned",
    "k = turn(k, places)",
    "k, v = turn(k, places), turn(v, places)",
    says="You turn the values, too; only queries and keys are turned.",
)
edited(
    "CachedAttention",
    "cached_turned_before_the_split",
    "q = self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2)",
    "q = turn(turn(self.W_Q(x), places).unflatten(2, (self.n_heads, -1)).transpose(1, 2), -1 * places)",
    says="You turn the queries before they are split into heads, with the angles of the whole width; each head is "
    "turned by itself.",
)
edited(
    "CachedAttention",
    "cached_no_positions",
    "q = turn(q, places)",
    "k = turn(k, -places)",
    says="Neither queries nor keys are turned, so the order of the tokens does not count.",
)
edited(
    "CachedAttention",
    "cached_without_mask",
    WEIGHTS,
    "weights = scores.softmax(dim=3)",
    says="Your tokens see later ones: within the new tokens the mask is missing.",
)
edited(
    "CachedAttention",
    "cached_mask_without_itself",
    MASK,
    "may = (places[:, None] > torch.arange(k.shape[2])) | (places[:, None] + torch.arange(k.shape[2]) == 0)",
    says="Your tokens do not see themselves.",
)
edited(
    "CachedAttention",
    "cached_mask_forgets_the_old",
    MASK,
    "may = torch.arange(x.shape[1])[:, None] >= torch.arange(k.shape[2])",
    says="Your mask counts the new tokens from 0, so with a cache they see only the first keys; they see all old ones.",
)
edited(
    "CachedAttention",
    "cached_mask_only_without_cache",
    MASK,
    "may = (places[:, None] >= torch.arange(k.shape[2])) | (T_before > 0)",
    says="With a cache you leave the mask out; when several new tokens come at once, they would see later ones.",
)
edited(
    "CachedAttention",
    "cached_finite_mask",
    "-torch.inf",
    "-1e4",
    says="Masked scores are −10,000 in yours, and real ones may be lower; take −∞.",
)
edited(
    "CachedAttention",
    "cached_not_scaled",
    "/ q.shape[3] ** 0.5",
    "/ 1.0",
    says="Your scores are not divided by the root of d_head.",
)
edited(
    "CachedAttention",
    "cached_scaled_by_d_model",
    "/ q.shape[3] ** 0.5",
    "/ x.shape[2] ** 0.5",
    says="You divide by the root of d_model; a head compares vectors of width d_head.",
)


@wrong(
    "CachedAttention",
    says="Your query heads take the key heads in turns, 0, 1, 0, 1; neighbours share them: 0, 0, 1, 1.",
    based_on="CachedAttention",
)
class cached_in_turns:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat(1, size, 1, 1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat(1, size, 1, 1)).transpose(1, 2).flatten(2)), (k, v)


edited(
    "CachedAttention",
    "cached_repeated_heads",
    ANSWER,
    "return self.W_O((weights @ values).transpose(1, 2).flatten(2)), (keys, values)",
    says="Your cache holds the repeated heads, so that nothing is saved; keep n_groups of them and repeat afterwards.",
)


@wrong(
    "CachedAttention",
    says="The cache that you return holds the new tokens only; the old ones are needed next time, too.",
    based_on="CachedAttention",
)
class cached_only_the_new:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        new_k = k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        new_v = v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (new_k, new_v)


@wrong(
    "CachedAttention",
    says="You hand back the cache as it came, without the new tokens.",
    based_on="CachedAttention",
)
class cached_never_grows:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        kept = (k, v) if cache is None else cache
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), kept


@wrong(
    "CachedAttention",
    says="You put the new keys and values before the old ones; the text goes on at its end.",
    based_on="CachedAttention",
)
class cached_new_ones_first:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([k, cache[0]], dim=2), torch.cat([v, cache[1]], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


@wrong(
    "CachedAttention",
    says="The cache is never looked at: the new tokens see only each other.",
    based_on="CachedAttention",
)
class cached_ignored:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < places, -torch.inf).softmax(dim=3)
        output = self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2))
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        return output, (k, v)


@wrong(
    "CachedAttention",
    says="You keep keys and values in the module, so that one text gets into another; what is kept comes in as cache.",
    based_on="CachedAttention",
)
class cached_in_the_module:
    def forward(self, x, cache=None):
        if cache is None:
            self.kept = None
        T_before, T_new = 0 if self.kept is None else self.kept[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if self.kept is not None:
            k, v = torch.cat([self.kept[0], k], dim=2), torch.cat([self.kept[1], v], dim=2)
        self.kept = k.detach(), v.detach()
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


@wrong(
    "CachedAttention",
    says="You look at the last 64 tokens only; each token sees all tokens before it.",
    based_on="CachedAttention",
)
class cached_window:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places)
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        far = places[:, None] - torch.arange(k.shape[2])
        weights = scores.masked_fill((far < 0) | (far >= 64), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


edited(
    "CachedAttention",
    "cached_without_output_layer",
    ANSWER,
    "return (weights @ values).transpose(1, 2).flatten(2), (k, v)",
    says="What the heads say still goes through W_O.",
)
edited(
    "CachedAttention",
    "cached_heads_not_moved_back",
    ANSWER,
    "return self.W_O((weights @ values).reshape(x.shape)), (k, v)",
    says="Before the heads are put side by side, their axis moves back behind that of the tokens (transpose); reshape "
    "alone mixes tokens and heads.",
)
edited(
    "CachedAttention",
    "cached_output_alone",
    ANSWER,
    "return self.W_O((weights @ values).transpose(1, 2).flatten(2))",
    says="You return the output alone; the cache belongs to it.",
)
edited(
    "CachedAttention",
    "cached_values_detached",
    "v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)",
    "v = self.W_V(x).detach().unflatten(2, (self.n_groups, -1)).transpose(1, 2)",
    says="No gradient reaches W_V: what is kept for later is still part of what is learned now.",
)
edited(
    "CachedAttention",
    "cached_keys_detached",
    "k = turn(k, places)",
    "k = turn(k, places).detach()",
    says="No gradient reaches W_K: what is kept for later is still part of what is learned now.",
)


@wrong(
    "CachedAttention",
    says="Two things: no gradient reaches W_K, for the keys are cut off (detach, no_grad or .data); and you divide by "
    "the root of d_model, where a head compares vectors of width d_head.",
    based_on="CachedAttention",
)
class cached_keys_detached_and_scaled_by_d_model:
    def forward(self, x, cache=None):
        T_before, T_new = 0 if cache is None else cache[0].shape[2], x.shape[1]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).unflatten(2, (self.n_heads, -1)).transpose(1, 2), places)
        k = turn(self.W_K(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2), places).detach()
        v = self.W_V(x).unflatten(2, (self.n_groups, -1)).transpose(1, 2)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / x.shape[2] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


@wrong(
    "CachedAttention",
    says="You split into heads by reshape or view alone, which mixes tokens and heads: the width is split first, and "
    "then the axis of the heads moves before that of the tokens (transpose).",
    based_on="CachedAttention",
)
class cached_split_without_moving:
    def forward(self, x, cache=None):
        B, T_new, _ = x.shape
        T_before = 0 if cache is None else cache[0].shape[2]
        places = torch.arange(T_new) + T_before
        q = turn(self.W_Q(x).reshape(B, self.n_heads, T_new, -1), places)
        k = turn(self.W_K(x).reshape(B, self.n_groups, T_new, -1), places)
        v = self.W_V(x).reshape(B, self.n_groups, T_new, -1)
        if cache is not None:
            k, v = torch.cat([cache[0], k], dim=2), torch.cat([cache[1], v], dim=2)
        size = self.n_heads // self.n_groups
        scores = q @ k.repeat_interleave(size, dim=1).transpose(2, 3) / q.shape[3] ** 0.5
        weights = scores.masked_fill(places[:, None] < torch.arange(k.shape[2]), -torch.inf).softmax(dim=3)
        return self.W_O((weights @ v.repeat_interleave(size, dim=1)).transpose(1, 2).flatten(2)), (k, v)


edited(
    "CachedAttention",
    "cached_with_bias",
    "self.W_O = nn.Linear(d_model, d_model, bias=False)",
    "self.W_O = nn.Linear(d_model, d_model)",
    says="W_O has a bias; none of the four layers has one.",
)
edited(
    "CachedAttention",
    "cached_key_bias",
    "self.W_K = nn.Linear(d_model, n_groups * d_head, bias=False)",
    "self.W_K = nn.Linear(d_model, n_groups * d_head)",
    says="W_K has a bias; none of the four layers has one.",
)
edited(
    "CachedAttention",
    "cached_all_heads_have_keys",
    "self.n_groups = n_groups",
    "self.n_groups = n_groups = n_heads",
    says="Every query head has keys of its own in yours; there are n_groups heads of keys and values.",
)
edited(
    "CachedAttention",
    "cached_extra_norm",
    "self.n_groups = n_groups",
    "self.n_groups, self.norm = n_groups, nn.LayerNorm(d_head)",
    says="Your module has a layer beside the four of the task.",
)


@right("CachedAttention", based_on="CachedAttention")
class CachedUnturned:
    def forward(self, x, cache=None):
        B, n, _ = x.shape
        keys = self.W_K(x).view(B, n, self.n_groups, -1).permute(0, 2, 1, 3)
        values = self.W_V(x).view(B, n, self.n_groups, -1).permute(0, 2, 1, 3)
        if cache:
            keys, values = (torch.cat(pair, dim=-2) for pair in zip(cache, (keys, values), strict=True))
        places = torch.arange(keys.shape[2])
        q = turn(self.W_Q(x).view(B, n, self.n_heads, -1).permute(0, 2, 1, 3), places[-n:])
        k = turn(keys, places)
        size = self.n_heads // self.n_groups
        q = q.reshape(B, self.n_groups, size, n, -1)
        scores = torch.einsum("bgsqd,bgkd->bgsqk", q, k) / math.sqrt(q.shape[-1])
        scores = scores + torch.full((n, len(places)), -torch.inf).triu(len(places) - n + 1)
        z = torch.einsum("bgsqk,bgkd->bgsqd", scores.softmax(-1), values)
        return self.W_O(z.reshape(B, self.n_heads, n, -1).permute(0, 2, 1, 3).reshape(B, n, -1)), (keys, values)


@right("CachedAttention")
class CachedByTheLibrary(nn.Module):
    def __init__(self, d_model, n_heads, n_groups):
        super().__init__()
        self.sizes = n_heads, n_groups, d_model // n_heads
        self.W_Q, self.W_O = (nn.Linear(d_model, d_model, bias=False) for _ in range(2))
        self.W_K, self.W_V = (nn.Linear(d_model, n_groups * (d_model // n_heads), bias=False) for _ in range(2))

    def forward(self, x, cache=None):
        n_heads, n_groups, d_head = self.sizes
        before = cache[0].size(-2) if cache is not None else 0
        places = torch.arange(x.size(1)) + before
        heads = [
            layer(x).reshape(*x.shape[:2], n, d_head).transpose(1, 2)
            for layer, n in ((self.W_Q, n_heads), (self.W_K, n_groups), (self.W_V, n_groups))
        ]
        q, k, v = turn(heads[0], places), turn(heads[1], places), heads[2]
        if cache is not None:
            k, v = torch.cat((cache[0], k), 2), torch.cat((cache[1], v), 2)
        may = torch.arange(k.size(2))[None, :] <= places[:, None]
        z = nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=may, enable_gqa=True)
        return self.W_O(z.transpose(1, 2).reshape(x.shape)), [k, v]


# ------------------------------------------------------------------------- exercise 9: train_language_model

edited(
    "train_language_model",
    "training_without_seed",
    "torch.manual_seed(seed)",
    "pass",
    says="Your model does not follow the seed; call set_seed(seed) before the model is made.",
)


@wrong(
    "train_language_model",
    says="You set the seed after the model was made, so that its first numbers do not follow it.",
)
def training_seeded_too_late(steps, seed):
    model = SmallModel()
    optimiser = torch.optim.Adam(model.parameters(), lr=0.01)
    torch.manual_seed(seed)
    for _ in range(steps):
        rows = TRAIN[torch.randint(len(TRAIN) - 24, (16, 1)) + torch.arange(24)]
        loss = loss_of(model, rows)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
    return model


edited(
    "train_language_model",
    "training_rows_without_seed",
    "starts = torch.randint(len(TRAIN) - 24, (16, 1))",
    "starts = torch.tensor(np.random.default_rng().integers(len(TRAIN) - 24, size=(16, 1)))",
    says="A new model follows the seed in yours, and a trained one does not: what is drawn while it is trained has to "
    "follow the seed, too. Draw with PyTorch.",
)
edited(
    "train_language_model",
    "training_with_a_fixed_seed",
    "torch.manual_seed(seed)",
    "torch.manual_seed(0)",
    says="Your model is the same for every seed.",
)
edited(
    "train_language_model",
    "training_on_the_validation_text",
    "rows = TRAIN[starts + torch.arange(24)]",
    "rows = VAL[starts % (len(VAL) - 24) + torch.arange(24)]",
    says="Your model knows VAL better than TRAIN. Does it learn from VAL? That is for looking only, or nobody knows "
    "what the model does on new text.",
)
edited(
    "train_language_model",
    "training_uphill",
    "loss.backward()",
    "(-loss).backward()",
    says="Your steps go uphill: the loss grows from step to step.",
)
edited(
    "train_language_model",
    "training_without_steps",
    "optimiser.step()",
    "pass",
    says="Your optimiser never makes a step, so the model stays as new.",
)
edited(
    "train_language_model",
    "training_on_what_stands_there",
    "loss = loss_of(model, rows)",
    "loss = nn.functional.cross_entropy(model(rows)[0].flatten(0, 1), rows.flatten())",
    says="Your model learns to repeat the token that it has just read; the loss is about the next one.",
)
edited(
    "train_language_model",
    "training_on_one_batch",
    "starts = torch.randint(len(TRAIN) - 24, (16, 1))",
    "starts = torch.arange(2)[:, None] * 24",
    says="You train on the same few rows at every step, so that they are learned by heart; draw others each time.",
)
edited(
    "train_language_model",
    "training_always_two_hundred_steps",
    "range(steps)",
    "range(200)",
    says="You make the same number of steps whatever `steps` is.",
)
edited(
    "train_language_model",
    "training_returns_the_loss",
    "return model",
    "return loss.item() if steps else 0.0",
    says="What you return is not the trained model alone, such as a loss or the model together with losses; return the "
    "model and nothing else.",
)
edited(
    "train_language_model",
    "training_with_a_new_model_each_step",
    "optimiser.zero_grad()",
    "model = SmallModel()",
    says="After 200 steps your model knows hardly anything of what follows what, although the steps change it. Is a "
    "model made anew in every step, is the step size too small, or do your rows not hold neighbouring tokens?",
)


@right("train_language_model")
def training_in_rows(steps, seed):
    torch.manual_seed(seed)
    model = SmallModel()
    optimiser = torch.optim.AdamW(model.parameters(), lr=1e-2, weight_decay=0.01)
    rows = TRAIN[: len(TRAIN) // 32 * 32].view(-1, 32)
    order = torch.randperm(len(rows))
    for step in range(steps):
        batch = rows[order[torch.arange(step * 12, step * 12 + 12) % len(rows)]]
        model.zero_grad()
        loss_of(model, batch).backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
    return model.eval()


@right("train_language_model")
def training_with_a_generator(steps, seed):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        model = SmallModel()
    draws = torch.Generator().manual_seed(seed)
    optimiser = torch.optim.Adam(model.parameters(), lr=0.012)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: min(1.0, (step + 1) / 10))
    for _ in range(steps):
        places = torch.randint(0, len(TRAIN) - 40, (20,), generator=draws).tolist()
        rows = torch.stack([TRAIN[i : i + 40] for i in places])
        loss = loss_of(model, rows)
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()
    return model


# ---------------------------------------------------------------------------------------- equal mutants

COUNTED = (
    "A pair that is counted occurs once at least, and where no pair occurs twice the next round finds none either."
)
RECIPE = "Optimiser, step size and rows are the student's; these train as well."

survivor("byte_pair_merges", "counts[pair] == 1", "counts[pair] <= 1", why=COUNTED)
survivor("byte_pair_merges", "break", "continue", why=COUNTED)
survivor("sampling_answers", "-counts", "~counts", why="For whole numbers ~n is -n - 1: the same order.")
survivor("sampling_distribution", "temperature == 0", "temperature <= 0", why="There are no negative temperatures.")
survivor(
    "sampling_distribution",
    "kept >= top_p",
    "kept > top_p",
    why="Whether a sum of probabilities is exactly top_p is a matter of rounding, which no test asks for.",
)
survivor("grouped_attention", "np.tri(T, dtype=bool)", "np.tri(T)", why="np.where takes 1 and 0 for True and False.")
survivor("CachedAttention", "cache[0].shape[2]", "cache[1].shape[2]", why="There are as many values as keys.")
survivor("CachedAttention", "cache[0].shape[2]", "cache[-1].shape[2]", why="There are as many values as keys.")
for more_or_less in ("25", "23"):
    survivor("train_language_model", "len(TRAIN) - 24", f"len(TRAIN) - {more_or_less}", why=RECIPE)
    survivor("train_language_model", "torch.arange(24)", f"torch.arange({more_or_less})", why=RECIPE)
for rows in ("17", "15"):
    survivor("train_language_model", "(16, 1)", f"({rows}, 1)", why=RECIPE)
