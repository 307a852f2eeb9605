"""What Python makes of the settings of each figure to take hold of, by the chapters' own cells where they have it."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from book_build import chapter
from figure_hand import Setting


@cache
def code(name: str, *fragments: str) -> dict[str, Any]:
    """The names that those cells of a chapter define whose source contains a fragment."""
    known: dict[str, Any] = {"np": np}
    for cell in chapter(name).notebook.cells:
        if cell.cell_type == "code" and any(fragment in cell.source for fragment in fragments):
            exec(cell.source, known)
    return known


def lookup(query, keys, values, temperature) -> Setting:
    powers = np.exp(np.array(keys) @ np.array(query) / np.sqrt(2) / temperature)
    weights = powers / powers.sum()
    return {"weights": weights, "output": weights @ np.array(values)}


def rotary(query, key, places, base) -> Setting:
    def turned(angles, place) -> np.ndarray:
        at = np.array(angles) + place * float(base) ** (-np.arange(len(angles)) / len(angles))
        return np.stack([np.cos(at), np.sin(at)])

    return {"score": (turned(query, places[0]) * turned(key, places[1])).sum()}


def mask(mask, layers) -> Setting:
    """A token hears what those it may look at have heard, and keeps what it has."""
    step = np.array(mask, dtype=bool) | np.eye(len(mask), dtype=bool)
    return {"reach": np.linalg.matrix_power(step.astype(int), layers) > 0}


def kept(groups, width, tokens) -> Setting:
    again = sum(2 * (step + 1) for step in range(tokens))  # keys and values of all tokens so far, at each step
    return {"kept": 2 * tokens * groups * width, "projected": 2 * tokens, "without": again}


def grouped(values, scheme, chosen) -> Setting:
    numbers = np.array(values)
    b, t, f = np.indices(numbers.shape)
    T, d = numbers.shape[1:]
    label = {  # the chapter's schemes
        "batch norm": f,
        "batch norm per step": t * d + f,
        "instance norm": b * d + f,
        "group norm": b * 2 + f // 3,
        "layer norm": b * T + t,
    }[scheme]
    members = numbers[label == label[tuple(chosen)]]
    return {"count": members.size, "mean": members.mean(), "spread": members.std()}


def designed(wish, scale, text) -> Setting:
    its = code("hand-designed-heads", "def signs(", "def softmax_rows(", "def partner_head(", "def examine(")
    its["wish"] = np.array(wish)
    head = its["partner_head"](scale)
    _, weight, spread = its["examine"](head)
    return {"weights": its["look"](its["signs"](text), *head)[1], "weakest": weight.min(), "lost": len(spread)}


def circuit(text, heads) -> Setting:
    """The chapter's circuit; a head that is off hands nothing over."""
    fragments = ("def signs(", "def softmax_rows(", "def partner_head(", "def begun(", "def induce(")
    its = code("hand-designed-heads", *fragments)
    its["OV_1"] = its["block"](its["SIGN"], its["BEFORE"], heads[0] * np.eye(5))
    its["OV_2"] = heads[1] * np.eye(22, 4)
    guess, first, second = its["induce"](text)
    before = first @ its["begun"](text) @ its["OV_1"][its["SIGN"], its["BEFORE"]]
    return {"first": first, "second": second, "before": before, "guess": guess}


def written(keys, values, rule, gamma, marker) -> Setting:
    write = code("linear-attention", "def write(rule")["write"]
    gates = np.where(np.arange(len(keys)) == marker, 0.0, 1.0)
    values = np.outer(values, np.ones(4))
    with np.errstate(invalid="ignore"):  # keys that were not written are 0 / 0
        read = [write(rule, np.eye(8)[keys[:n]], values[:n], gates[:n], gamma) for n in range(1, len(keys) + 1)]
    return {"answers": np.array(read)[:, :3, 0]}


def mixed(kind, length, tokens) -> Setting:
    """The chapter's layers with the module's random numbers."""
    fragments = ("def seeded(", "def convolution(", "def recurrence(", "def slopes(")
    its = code("architectures", *fragments)

    def drawn(seed: int, size: int) -> np.ndarray:
        return np.sqrt(3) * (2 * mulberry32(seed, size) - 1)

    d, most = its["d"], 12
    place, near, *four = np.split(
        drawn(1, most**2 + 3 + 4 * d**2), most**2 + np.array([0, 3, 3 + d**2, 3 + 2 * d**2, 3 + 3 * d**2])
    )
    its["W_place"] = place.reshape(most, most)[:length, :length] / np.sqrt(length)
    its["W_near"] = near / np.sqrt(3)
    W_Q, W_K, W_in, W_state = np.reshape(four, (4, d, d)) / np.sqrt(d)
    its |= {"W_Q": 1.5 * W_Q, "W_K": 1.5 * W_K, "W_in": W_in, "W_state": W_state}
    X = drawn(100 + tokens, most * d).reshape(most, d)[:length]
    if kind == "attention":
        table, numbers = its["weights"](X), W_Q.size + W_K.size
    elif kind == "recurrence":
        table, numbers = its["slopes"](its["recurrence"], X), W_in.size + W_state.size
    else:
        table = its[kind](np.eye(length))
        numbers = np.size(its[{"mlp_mixer": "W_place", "convolution": "W_near", "state_space": "KEEP"}[kind]])
    return {"table": table, "numbers": numbers, "pairs": (table != 0).sum()}


def sampled(texts, temperature, k, p) -> Setting:
    found: Setting = {"chances": [], "drawn": [], "kept": []}
    for text in texts:
        powers = np.exp(np.log(text["counts"]) / temperature)
        chances = powers / powers.sum()
        best = np.where(np.arange(len(chances)) < k, chances, 0) / chances[:k].sum()
        stays = (best > 0) & (best.cumsum() - best < p)
        found["chances"].append(chances)
        found["drawn"].append(np.where(stays, best, 0) / best[stays].sum())
        found["kept"].append(stays.sum())
    return found


def scaled(width, keys, root, draw) -> Setting:
    """One query and its keys with entries of variance 1, of numbers drawn as the module does."""
    drawn = np.sqrt(3) * (2 * mulberry32(draw, 65 * 1024).reshape(65, 1024) - 1)
    products = np.cumsum(drawn[0] * drawn[1 : keys + 1], axis=1)  # (keys, 1024): over ever more entries

    def weighed(width, root) -> tuple[np.ndarray, np.ndarray]:
        scores = products[:, width - 1] / (np.sqrt(width) if root else 1)
        powers = np.exp(scores - scores.max())
        return scores, powers / powers.sum()

    scores, weights = weighed(width, root)
    largest = [[weighed(2**power, root)[1].max() for power in range(11)] for root in (0, 1)]
    return {"scores": scores, "weights": weights, "largest": largest}


@cache
def mulberry32(seed: int, n: int) -> np.ndarray:
    """n numbers from 0 to 1 of this well-known generator."""
    whole = np.uint64(0xFFFFFFFF)
    state = (np.uint64(seed) + np.arange(1, n + 1, dtype=np.uint64) * np.uint64(0x6D2B79F5)) & whole
    mixed = (state ^ state >> np.uint64(15)) * (state | np.uint64(1)) & whole
    mixed ^= mixed + ((mixed ^ mixed >> np.uint64(7)) * (mixed | np.uint64(61)) & whole) & whole
    return (mixed ^ mixed >> np.uint64(14)) / 2**32


def attended(energies, annotations, seconds, step, factor) -> Setting:
    scores = factor * np.array(energies[step])
    powers = np.exp(scores - scores.max())
    weights = powers / powers.sum()
    middles = seconds * (np.arange(len(weights)) + 0.5)
    return {"weights": weights, "context": weights @ np.array(annotations), "when": weights @ middles}


def followed(tokens, heads, width, entry, back) -> Setting:
    """Where the number is found again that is marked before."""
    before = np.zeros((tokens, heads * width))
    before[tuple(entry)] = 1
    right = before.reshape(tokens, heads, width).swapaxes(0, 1)
    wrong = before.reshape(heads, tokens, width)
    merged = [part.swapaxes(0, 1) if back == "right" else part for part in (right, wrong)]
    return {
        "right": np.argwhere(right)[0],
        "wrong": np.argwhere(wrong)[0],
        "merged": [np.argwhere(part.reshape(before.shape))[0] for part in merged],
    }
