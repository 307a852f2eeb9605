"""The figures to take hold of: where each is, what Python has, what is done with it, and what does its task."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from book_build import chapter
from figure_hand import Setting, Step, finger, holds, keys, press, pull, says, shows, types

# --- what Python has ------------------------------------------------------------------------------------


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


# --- the figures ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Figure:
    """Where it is, what Python has, other settings, what is done with it, and what does its task."""

    name: str
    chapter: str
    python: Callable[..., Setting]  # of what is in the model, by its parameters' names
    other: Callable[[np.random.Generator], Setting]
    walk: tuple[Step, ...]
    task: tuple[Step, ...]

    @property
    def selector(self) -> str:
        return f".live-figure[data-module='figure-{self.name}.js']"

    @property
    def element(self):
        return chapter(self.chapter).article.select_one(self.selector)

    @property
    def start(self) -> Setting:
        """What it starts with, of what Python wants to know."""
        start = json.loads(self.element["data-start"])
        wanted = self.python.__code__.co_varnames[: self.python.__code__.co_argcount]
        return {name: start[name] for name in wanted}


def ones(*shape: int) -> Callable[[np.random.Generator], list]:
    return lambda rng: rng.integers(0, 2, shape).tolist()


FIGURES = [
    Figure(
        "lookup",
        "index",
        lookup,
        lambda rng: {
            "query": rng.uniform(-2, 2, 2).round(2).tolist(),
            "keys": rng.uniform(-1.5, 1.5, (3, 2)).round(2).tolist(),
            "temperature": float(10 ** rng.uniform(-1, 1)),
        },
        (
            says("cat gets most, 0.62 of the weight; the output is 3.40"),
            pull("slider", "query", -60, -30),
            holds(query=lambda query: query[0] < 0.7 and query[1] > 0.1),
            finger("slider", "key: dog", 40),
            holds(keys=lambda keys: keys[1][0] > 1.1),
            keys("slider", "temperature", "ArrowLeft"),
            holds(temperature=lambda temperature: temperature < 1),
        ),
        (keys("slider", "query", *4 * ["Shift+ArrowLeft"]), says("moon gets most")),
    ),
    Figure(
        "rotary",
        "positional-encoding",
        rotary,
        lambda rng: {"places": rng.integers(0, 60, 2).tolist(), "base": float(10 ** rng.uniform(1, 6))},
        (
            says("at places 3 and 0, a difference of 3"),
            keys("slider", "key at place", "ArrowRight"),
            says("at places 3 and 1, a difference of 2"),
            pull("slider", "query at place", 0, 0),
            holds(places=lambda places: 28 <= places[0] <= 32 and places[1] == 1),
            finger("slider", "base"),
            holds(base=lambda base: base < 10_000),
        ),
        (press("Move both by 7 places"), says("at places 10 and 7, a difference of 3")),
    ),
    Figure(
        "mask",
        "self-attention",
        mask,
        lambda rng: {"mask": ones(6, 6)(rng), "layers": int(rng.integers(1, 6))},
        (
            says("“pot” has heard of 3 of 6 tokens, but not of “she”"),
            pull("checkbox", "tea may look at she", 0, 0),
            pull("checkbox", "tea may look at she", 30, 0),  # wipes out, and goes on doing so
            holds(mask=lambda mask: mask[2] == [0, 0, 1, 0, 0, 0]),
            finger("checkbox", "from may look at she"),
            keys("checkbox", "from may look at she", "ArrowDown", "ArrowDown", " "),
            holds(mask=lambda mask: [line[0] for line in mask] == [1, 1, 0, 1, 0, 1]),
            shows("[role=checkbox][tabindex='0']", 1),
            press("all"),
            says("also of “she”"),
        ),
        (
            press("window of two"),
            keys("slider", "layers", *3 * ["ArrowRight"]),
            says("After 5 layers “pot” has heard of 6 of 6 tokens"),
        ),
    ),
    Figure(
        "cache",
        "multi-head-attention",
        kept,
        lambda rng: {"groups": int(rng.choice([1, 2, 4])), "tokens": int(rng.integers(1, 9))},
        (
            says("holds 96 numbers"),
            press("GQA: 2"),
            finger("button", "Write a token"),
            keys("button", "Write a token", "Enter"),
            holds(groups=2, tokens=8),
            shows("svg rect", 32),
            keys("slider", "tokens written", "ArrowLeft"),
            says("holds 56 numbers. 14 projections so far; without the cache 56."),
        ),
        (press("MQA: 1"), says("holds 24 numbers")),
    ),
    Figure(
        "groups",
        "normalization",
        grouped,
        lambda rng: {
            "scheme": str(
                rng.choice(["batch norm", "batch norm per step", "instance norm", "group norm", "layer norm"])
            ),
            "chosen": [int(rng.integers(size)) for size in (3, 4, 6)],
        },
        (
            says("layer norm: 6 numbers"),
            says("stays in its sequence and stays in its time step"),
            finger("button", "1, sequence 1, time 2, feature 2, in the group"),
            pull("button", "4, sequence 2, time 1, feature 1", 0, 0),
            holds(chosen=[1, 0, 0]),
            keys("button", "4, sequence 2, time 1, feature 1, in the group", "ArrowDown", "Shift+ArrowRight"),
            holds(chosen=[2, 1, 0]),
            shows(".cell[tabindex='0']", 1),
            press("batch norm"),
            says("batch norm: 12 numbers"),
        ),
        (press("batch norm per step"), says("reaches across sequences and stays in its time step")),
    ),
    Figure(
        "head",
        "hand-designed-heads",
        designed,
        lambda rng: {
            "wish": ones(4, 4)(rng),
            "scale": float(rng.uniform(0, 12)),
            "text": "".join(rng.choice(list("()[]"), rng.integers(1, 9))),
        },
        (
            says("the weakest row puts 0.997 on what it asks for"),
            says("568 rows find nothing"),
            pull("checkbox", "( asks for (", 40, 0),
            holds(wish=lambda wish: wish[0] == [1, 1, 0, 0]),
            finger("checkbox", "( asks for ("),
            keys("checkbox", "( asks for )", "ArrowDown", "ArrowLeft", " "),
            holds(wish=lambda wish: wish[:2] == [[0, 1, 0, 0], [0, 0, 0, 0]]),
            shows("[role=checkbox][tabindex='0']", 1),
            types("your text", "([x)]"),
            holds(text="([)]"),
            press("( behind the text"),
            holds(text="([)]("),
        ),
        (
            *(
                finger("checkbox", f"{sign} asks for {other}")
                for sign, partner in zip("()[]", ")(][", strict=True)
                for other in (sign, partner)
            ),
            says("every row finds something"),
            keys("slider", "scale", *11 * ["ArrowLeft"]),
            says("the weakest row puts 0.992"),
        ),
    ),
    Figure(
        "state",
        "linear-attention",
        written,
        lambda rng: {
            "values": rng.uniform(-3, 3, 12).round(2).tolist(),
            "rule": str(rng.choice(["sum", "decay", "gate", "delta"])),
            "gamma": float(rng.uniform(0.1, 1)),
            "marker": int(rng.integers(1, 12)),
        },
        (
            says("sum: after all pairs the state answers A 0.50 (newest −1.5), B 0.50 (newest 2), C −0.75"),
            press("delta"),
            says("A −1.50 (newest −1.5), B 2.00 (newest 2), C −2.00 (newest −2)"),
            pull("slider", "value of pair 10, key A", 0, -40),
            holds(values=lambda values: values[9] > -1),
            finger("slider", "value of pair 12, key B", 0, 40),
            holds(values=lambda values: values[11] < 2),
            keys("slider", "value of pair 3, key C", "Shift+ArrowUp", "ArrowDown", "ArrowRight", "ArrowUp"),
            holds(values=lambda values: values[2:4] == [1.25, 2.75]),
            shows(".handle[tabindex='0']", 1),
            press("decay"),
            keys("slider", "decay γ", *3 * ["ArrowLeft"]),
            holds(gamma=lambda gamma: abs(gamma - 0.8) < 1e-9),
        ),
        (press("gate"), keys("slider", "gate closes before pair", *3 * ["ArrowRight"]), says("A −1.25 (newest −1.5)")),
    ),
    Figure(
        "sampling",
        "small-language-model",
        sampled,
        lambda rng: {
            "temperature": float(10 ** rng.uniform(-1, 0.7)),
            "k": int(rng.integers(1, 8)),
            "p": float(rng.uniform(0.05, 1)),
        },
        (
            says("After “A cup of” 3 of 7 words may be drawn, “tea” with 0.53."),
            keys("slider", "top-k", *5 * ["ArrowLeft"]),
            says("2 of 7 words may be drawn, “tea” with 0.67."),
            pull("slider", "top-p", 0, 0),
            holds(p=lambda p: p in (0.5, 0.55)),
            finger("slider", "temperature"),
            holds(temperature=lambda temperature: temperature < 1),
        ),
        (keys("slider", "top-p", "ArrowRight", "ArrowRight"), says("4 of 7 words may be drawn")),
    ),
    Figure(
        "scale",
        "self-attention",
        scaled,
        lambda rng: {
            "width": int(2 ** rng.integers(0, 11)),
            "keys": int(rng.integers(2, 65)),
            "root": int(rng.integers(2)),
            "draw": int(rng.integers(1, 100)),
        },
        (
            says("Width 64, 8 keys, without the root"),
            press("with the root"),
            holds(root=1),
            keys("slider", "width", "ArrowRight"),
            holds(width=128),
            pull("slider", "keys", 0, 0),
            holds(keys=lambda keys: 25 <= keys <= 41),
            finger("slider", "width"),
            holds(width=32),
            press("New vectors"),
            holds(draw=4),
        ),
        (
            press("with the root"),
            keys("slider", "width", "End"),
            keys("slider", "keys", "End"),
            says("Width 1024, 64 keys, with the root: scores of a size of 1"),
        ),
    ),
    Figure(
        "decoder",
        "rnn-attention",
        attended,
        lambda rng: {"step": int(rng.integers(9)), "factor": float(rng.uniform(0, 3))},
        (
            says("Step 1 of"),
            says("The model gives this letter"),
            keys("slider", "step", "ArrowRight", "ArrowRight"),
            says("Step 3 of"),
            press("Next letter"),
            holds(step=3),
            finger("slider", "energies times"),
            holds(factor=lambda factor: 1.4 <= factor <= 1.6),
            pull("slider", "step", 0, 0),
            holds(step=lambda step: step > 3),
            keys("slider", "step", "End"),
            says("the end: the largest weight"),
            press("Next letter"),
            holds(step=0),
        ),
        (keys("slider", "energies times", "Home"), says("the context is the plain mean")),
    ),
    Figure(
        "split",
        "multi-head-attention",
        followed,
        lambda rng: {
            "entry": [int(rng.integers(4)), int(rng.integers(6))],
            "back": str(rng.choice(["right", "reshape"])),
        },
        (
            says("split right, it is in head 2 as token 1, and after the merge back where it was"),
            says("by the bare reshape in head 2 as token 0, and after the merge at token 0, column 3"),
            press("bare reshape"),
            says("by the bare reshape in head 2 as token 0, and after the merge back where it was"),
            finger("button", "token 2, column 6"),
            holds(entry=[2, 5]),
            pull("button", "token 0, column 1", 0, 0),
            holds(entry=[0, 0]),
            keys("button", "token 0, column 1", "ArrowDown", "ArrowRight", "ArrowLeft", "ArrowLeft"),
            holds(entry=[1, 0]),
            shows(".cell[tabindex='0']", 1),
        ),
        (finger("button", "token 3, column 5"), says("by the bare reshape in head 3 as token 3")),
    ),
    Figure(
        "circuit",
        "hand-designed-heads",
        circuit,
        lambda rng: {"text": "".join(rng.choice(list("()[]"), rng.integers(1, 9))), "heads": ones(2)(rng)},
        (
            says("After “([)(” the guess is “[” with 1.00."),
            press("head of layer 1"),
            holds(heads=[0, 1]),
            says("layer 1 is off, so no token knows who came before it, and layer 2 looks at begin"),
            finger("button", "head of layer 1"),
            keys("button", "head of layer 2", "Enter"),
            says("layer 2 is off"),
            finger("button", "head of layer 2"),
            press("] behind the text"),
            says("After “([)(]” there is no guess: nothing has followed “]” so far"),
            types("your text", "((x"),
            holds(text="((", heads=[1, 1]),
            says("the guess is “(” with 1.00"),
        ),
        (types("your text", "()(]("), says("the guess is “)” with 0.50, “]” with 0.50")),
    ),
    Figure(
        "mixing",
        "architectures",
        mixed,
        lambda rng: {
            "kind": str(rng.choice(["mlp_mixer", "convolution", "state_space", "recurrence", "attention"])),
            "length": int(rng.integers(2, 13)),
            "tokens": int(rng.integers(1, 100)),
        },
        (
            says("MLP-Mixer, 9 tokens: 81 of 81 pairs by 81 free numbers"),
            press("convolution"),
            says("25 of 81 pairs by 3 free numbers"),
            keys("slider", "tokens", "ArrowRight", "ArrowRight"),
            holds(length=11),
            finger("button", "state space"),
            says("66 of 121 pairs by 1 free number, the share kept"),
            pull("slider", "tokens", 0, 0),
            holds(length=7),
            keys("button", "recurrence", "Enter"),
            says("28 of 49 pairs by 32 free numbers"),
            press("Other tokens"),
            holds(tokens=2),
        ),
        (
            keys("slider", "tokens", "End"),
            says("144 of 144 pairs by 144 free numbers"),
            press("attention"),
            says("144 of 144 pairs by 32 free numbers"),
        ),
    ),
]
