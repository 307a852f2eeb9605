"""Every row of the curriculum's table of sources, and every topic of a chapter, has its place in the book.

A place is a label in a chapter (`(label)=` before a heading or a note, or the name of an exercise) and words that its
section holds: a heading that stays while its matter goes is noticed.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

BOOK = Path(__file__).parents[2] / "book"
PREFIXES = {
    "rnn": "rnn-attention",
    "sa": "self-attention",
    "mh": "multi-head-attention",
    "pe": "positional-encoding",
    "norm": "normalization",
    "tf": "transformer",
    "hh": "hand-designed-heads",
    "la": "linear-attention",
    "ar": "architectures",
    "lm": "small-language-model",
}

# the source's row, with its right values or its trap → label → words
SOURCES = {
    "S0 Q3, the worked example": [("sa-worked-self", r"-13\.25|W_Q|right values|2\.5")],
    "S0 Q3d, what dominates": [("sa-reading", r"dominat")],
    "S0 Q4, cross-attention": [("sa-worked-cross", r"X_kv|cross")],
    "S1 Q1, tokens in columns": [("sa-columns", r"768|features"), ("sa-columns", r"column")],
    "S1 Q2.3, padding": [("mh-masks", r"padding"), ("pe-learned", r"longer|length")],
    "S1 Q3.1, shapes": [("mh-shapes", r"768"), ("mh-shapes", r"split_heads|d_head")],
    "S2 1a, argmax": [("sa-argmax", r"argmax"), ("sa-gradient", r"gradient")],
    "S2 2b, add or concatenate": [("pe-add-concat", r"four"), ("pe-add-concat", r"concatenat")],
    "S2 2c, the relative bias of concatenation": [("pe-relative", r"bias"), ("pe-relative", r"concatenat")],
    "S3, the root and the exponential": [("sa-scaled", r"sqrt"), ("sa-why-scale", r"varian")],
    "S3, epsilon": [("norm-standardise", r"eps|varepsilon|ε")],
    "S3, masks are not for training only": [("tf-teacher-forcing", r"step"), ("tf-mask-trap", r"mask")],
    "S4 1.2, the dimension": [("la-dimension", r"binom|C\("), ("la-positive", r"even"), ("la-positive", r"odd")],
    "S4 1.4, the order of products": [("la-order", r"bracket"), ("la-measured", r"slope")],
    "S4 Q2, pooling": [("ar-cnn", r"576 – 320 – 120 – 4"), ("ar-cnn", r"pool")],
    "S4 Q3, speech to text": [("rnn-speech", r"espeak|LSTM"), ("rnn-speech-results", r"Jaccard|Damerau")],
    "S0 Q1, weak claims": [("ar-length", r"length"), ("ar-shuffle", r"structured data")],
    "S0 Q2, queries, keys, values, masks": [("sa-retrieval", r"key"), ("sa-mask", r"mask")],
    "S0 Q2c, several heads": [("mh-three-questions", r"question")],
    "S0 Q2d, encoder and decoder": [("tf-three-kinds", r"decoder")],
    "S1 Q3.2, the block": [("tf-block", r"residual|feed")],
    "S2 3, hand-designed transformers": [
        ("hh-content", r"W_Q"),
        ("hh-position", r"position"),
        ("hh-compare", r"[Pp]attern"),
    ],
}

TOPICS = {
    "rnn-attention": [
        ("rnn-tasks", r"sequence"),
        ("rnn-lstm", r"vanish"),
        ("rnn-bottleneck", r"fixed|bottleneck"),
        ("rnn-torch-bottleneck", r"length"),
        ("rnn-bahdanau", r"tanh"),
        ("rnn-scores", r"[Aa]dditive"),
        ("rnn-scores", r"general"),
        ("rnn-similarities", r"Damerau"),
        ("rnn-similarities", r"Jaccard"),
        ("rnn-similarities", r"WER"),
        ("rnn-speech", r"mel"),
        ("rnn-speech-results", r"loss"),
        ("rnn-speech-results", r"floor"),
        ("rnn-speech-alignment", r"spectrogram|alignment"),
    ],
    "self-attention": [
        ("sa-retrieval", r"lookup|dictionary"),
        ("sa-argmax", r"temperature"),
        ("sa-gradient", r"gradient"),
        ("sa-why-scale", r"Jacobian"),
        ("sa-why-softmax", r"average"),
        ("sa-reading", r"row"),
        ("sa-columns", r"[Tt]rap|column"),
        ("sa-cost", r"multiplication"),
        ("sa-online", r"FlashAttention"),
        ("sa-root-trained", r"QK-norm"),
        ("sa-retrieval", r"kernel regression"),
        ("sa-it", r"floor"),
    ],
    "multi-head-attention": [
        ("mh-three-questions", r"Jane"),
        ("mh-one-average", r"Florence"),
        ("mh-shapes", r"shape"),
        ("mh-planted", r"head"),
        ("mh-masks", r"causal"),
        ("mh-masks", r"padding"),
        ("mh-torch", r"MultiheadAttention"),
        ("mh-trained", r"trained"),
        ("mh-trained", r"floor"),
        ("mh-ablation", r"[Mm]ean ablation"),
        ("mh-shared", r"KV cache"),
        ("mh-shared", r"bytes"),
        ("mh-module", r"enable_gqa"),
        ("mh-exercises", r"attention sink"),
    ],
    "positional-encoding": [
        ("pe-no-order", r"permut|equivarian"),
        ("pe-clock", r"clock|hand"),
        ("pe-add-concat", r"concatenat"),
        ("pe-relative", r"bias"),
        ("pe-rotary", r"turn|rotat"),
        ("pe-alibi", r"slope"),
        ("pe-learned", r"learn"),
        ("pe-extrapolation", r"longer"),
        ("pe-no-order", r"NoPE"),
        ("pe-base", r"base"),
        ("pe-extension", r"interpolation"),
        ("pe-extension", r"attention sink"),
        ("pe-shift", r"matrix"),
    ],
    "normalization": [
        ("norm-cube", r"batch"),
        ("norm-batch-lengths", r"length"),
        ("norm-small-batches", r"small"),
        ("norm-online", r"online|running"),
        ("norm-residual", r"residual"),
        ("norm-gradients", r"gradient"),
        ("norm-gradients", r"rank collapse"),
        ("norm-depth", r"depth|layers"),
        ("norm-rms", r"RMS"),
        ("norm-residual", r"[Pp]re"),
        ("norm-today", r"QK-norm"),
    ],
    "transformer": [
        ("tf-encoder", r"encoder"),
        ("tf-decoder", r"cross"),
        ("tf-sos", r"SOS|start"),
        ("tf-teacher-forcing", r"step"),
        ("tf-translator", r"train"),
        ("tf-classifier", r"overfit"),
        ("tf-classifier", r"50"),
        ("tf-three-kinds", r"[Ee]ncoder"),
        ("tf-pretraining", r"label"),
        ("tf-today", r"SwiGLU"),
        ("tf-three-kinds", r"masked-diffusion"),
        ("tf-forced-greedy", r"edit distance"),
        ("tf-forced-greedy", r"exposure\s+bias"),
        ("tf-defaults-trap", r"scaled_dot_product_attention"),
    ],
    "hand-designed-heads": [
        ("hh-basis", r"basis|name"),
        ("hh-content", r"content|partner"),
        ("hh-content", r"QK circuit"),
        ("hh-content", r"OV circuit"),
        ("hh-position", r"position|place"),
        ("hh-previous", r"previous"),
        ("hh-begin", r"begin"),
        ("hh-begin", r"sink logit"),
        ("hh-sharpness", r"gap"),
        ("hh-torch", r"learn"),
        ("hh-compare", r"gap"),
        ("hh-freedom", r"basis|invert|same"),
        ("hh-second", r"axis_head"),
        ("hh-induction", r"residual stream"),
        ("hh-induction", r"induction head"),
        ("hh-induction", r"K-composition"),
        ("hh-induction-learned", r"K-composition"),
    ],
    "linear-attention": [
        ("la-feature-map", r"feature"),
        ("la-dimension", r"dimension|features"),
        ("la-positive", r"positiv"),
        ("la-order", r"bracket|order"),
        ("la-measured", r"slope"),
        ("la-measured", r"cross"),
        ("la-memory", r"memory"),
        ("la-error", r"approximation"),
        ("la-fails", r"point"),
        ("la-causal", r"state"),
        ("la-causal", r"KV cache"),
        ("la-chunks", r"chunkwise form"),
        ("la-capacity", r"least squares"),
        ("la-capacity", r"delta rule"),
        ("la-writing", r"decay"),
        ("la-writing", r"gate"),
        ("la-hybrids", r"softmax"),
    ],
    "architectures": [
        ("ar-four", r"convolution"),
        ("ar-four", r"recurren"),
        ("ar-path", r"path"),
        ("ar-cost", r"parameter|multiplication"),
        ("ar-cannot", r"cannot"),
        ("ar-torch", r"task"),
        ("ar-cnn", r"576 – 320 – 120 – 4"),
        ("ar-applications", r"few images"),
        ("ar-applications", r"up to 10,000 rows"),
        ("ar-four", r"unit matrix"),
        ("ar-ssm", r"Mamba"),
        ("ar-experts", r"mixture of experts"),
        ("ar-cannot", r"causal mask"),
        ("ar-torch", r"control mixes nothing"),
        ("ar-torch", r"associative recall"),
        ("ar-vit", r"ViT"),
    ],
    "small-language-model": [
        ("lm-tokens", r"[Bb]yte-pair encoding"),
        ("lm-loss", r"perplexity"),
        ("lm-loss", r"bits per character"),
        ("lm-loss", r"bigram"),
        ("lm-sampling", r"Temperature"),
        ("lm-sampling", r"Top-k"),
        ("lm-sampling", r"Top-p"),
        ("lm-work", r"KV cache"),
        ("lm-work", r"GQA"),
        ("lm-data", r"pydoc_data"),
        ("lm-model", r"SwiGLU"),
        ("lm-model", r"tied"),
        ("lm-training", r"floor"),
        ("lm-writing", r"[Gg]reedy"),
        ("lm-cache", r"logits"),
        ("lm-heads", r"[Ii]nduction"),
        ("lm-heads", r"sink"),
    ],
}


@cache
def sections(chapter: str) -> dict[str, str]:
    """The text behind each label of a chapter, up to the next label or heading of the same or a higher rank."""
    lines = (BOOK / f"{chapter}.md").read_text(encoding="utf-8").split("\n")
    found: dict[str, str] = {}
    for number, line in enumerate(lines):
        label = re.fullmatch(r"\(([\w-]+)\)=", line.strip())
        if not label:
            continue
        level, text, in_code = 0, [], False
        for following in lines[number + 1 :]:
            if following.startswith("```"):
                in_code = not in_code
            heading = None if in_code else re.match(r"(#+) ", following)
            if heading and level and len(heading[1]) <= level:
                break
            if heading and not level:
                level = len(heading[1])
            text.append(following)
        found[label[1]] = "\n".join(text)
    return found


def missing(label: str, words: str) -> str:
    """Why the book has no such place; "" where it has."""
    text = sections(PREFIXES[label.split("-")[0]]).get(label)
    if text is None:
        return f"no label ({label})="
    return "" if re.search(words, text) else f"nothing like {words!r} behind ({label})="


@pytest.mark.parametrize("row", SOURCES)
def test_every_row_of_the_sources_has_its_place(row: str) -> None:
    assert [why for place in SOURCES[row] if (why := missing(*place))] == []


@pytest.mark.parametrize("chapter", TOPICS)
def test_every_topic_has_its_place(chapter: str) -> None:
    assert {PREFIXES[label.split("-")[0]] for label, _ in TOPICS[chapter]} == {chapter}
    assert [why for place in TOPICS[chapter] if (why := missing(*place))] == []


def test_a_place_that_goes_missing_is_noticed() -> None:
    assert missing("sa-nowhere", "x") == "no label (sa-nowhere)="
    assert "nothing like 'zebra'" in missing("sa-argmax", "zebra")
