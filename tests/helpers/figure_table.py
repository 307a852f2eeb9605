"""The figures to take hold of: where each is, what Python has, what is done with it, and what does its task."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from book_build import chapter
from figure_hand import Setting, Step, finger, holds, keys, press, pull, says, shows, types
from figure_python import (
    attended,
    circuit,
    designed,
    followed,
    grouped,
    kept,
    lookup,
    mask,
    mixed,
    rotary,
    sampled,
    scaled,
    written,
)


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
