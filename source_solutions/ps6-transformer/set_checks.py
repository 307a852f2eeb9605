"""What the hidden tests of ps6's two layers share: a student's layer beside the reference's, with the same numbers."""

import numpy as np
import torch

from autograder.checks import (
    case,
    changes_its_input,
    compare,
    fail,
    gradients,
    is_instance,
    later,
    observe,
    parameter_gradients,
    settled,
    to_array,
)

WIDTHS = {"linear1": lambda d, d_ff: (d_ff, d), "linear2": lambda d, d_ff: (d, d_ff)}


def tensor(array):
    return torch.tensor(np.asarray(array), dtype=torch.float32)


def some_mask(rng, *shape):
    """A random mask in which every row has a True and a False."""
    mask = rng.random(shape) < 0.5
    for row in mask.reshape(-1, shape[-1]):
        first, second = rng.permutation(shape[-1])[:2]
        row[first], row[second] = True, False
    return torch.tensor(mask)


def random_state(rng, layer):
    """Numbers for every parameter: matrices that keep the size of what goes through, norms that are no identity."""
    state = {}
    for name, value in layer.state_dict().items():
        drawn = rng.normal(size=tuple(value.shape))
        if value.ndim == 2:
            drawn = 1.3 * drawn / np.sqrt(value.shape[1])
        elif name.startswith("norm"):
            drawn = 0.4 * drawn + (name.endswith("weight"))
        else:
            drawn = 0.5 * drawn
        state[name] = tensor(drawn)
    return state


class Layers:
    """The judgement of one kind of layer. build, right: make the student's (`later`) and the reference's.

    attentions, norms: the names of these parts. set_seed: called before each run of a student's layer, `later`. What
    is the student's is looked up when it is called, in a check: it may be missing.
    """

    def __init__(self, build, right, attentions, norms, set_seed):
        self.build, self.right, self.set_seed = build, right, set_seed
        self.attentions, self.norms = attentions, norms

    def twins(self, rng, d_model, n_heads, d_ff):
        """The student's layer and the reference's, with the same random numbers."""
        right, mine = self.right(d_model, n_heads, d_ff), self.build(d_model, n_heads, d_ff)
        state = random_state(rng, right)
        right.load_state_dict(state)
        for name in (*self.attentions, *self.norms, *WIDTHS):
            getattr(mine, name)  # says which one is missing
        later(mine.load_state_dict, state, strict=False)  # buffers of the student's own stay as they are
        return mine, right

    def same(self, pair, *cases):
        """Demand equal outputs of the two layers in each case, and unchanged inputs; returns the student's outputs.

        A case is a tuple of inputs or a `case(...)`; all go in one message.
        """
        mine, right = pair
        asked, outputs = [], []
        for one in (one if isinstance(one, case) else case(*one) for one in cases):
            copies = [None if i is None else i.clone() for i in one.args]
            self.set_seed()
            asked.append((one, copies, later(mine, *copies, **one.kwargs)))
        for one, copies, answer in asked:
            with torch.no_grad():
                expected = right(*one.args, **one.kwargs)
            found = settled(answer)
            if isinstance(found, (tuple, list)):
                fail("forward should return the tokens alone, not several things.")
            compare(found, expected, "the output", atol=1e-4)
            pairs = zip(copies, one.args, strict=True)
            if getattr(answer, "_changed", None) or any(b is not None and not torch.equal(a, b) for a, b in pairs):
                changes_its_input("forward")
            outputs.append(found)
        return outputs

    def parts(self, d_model, n_heads, d_ff):
        """Demand parts with the names and shapes of the task."""
        layer = self.build(d_model, n_heads, d_ff)
        names = [str(name) for name, _ in settled(layer).named_parameters()]
        parts = *self.attentions, *self.norms, *WIDTHS
        asked = len(self.right(d_model, n_heads, d_ff).state_dict())
        others = [n for n in names if n.partition(".")[0] not in parts] if len(names) > asked else []
        observe("parameters beside the parts", bool(others), beside=True)
        for attention in self.attentions:
            for name in ("W_Q", "W_K", "W_V", "W_O"):
                weight = getattr(getattr(layer, attention), name).weight
                if to_array(weight, f"{attention}.{name}.weight").shape != (d_model, d_model):
                    fail(f"{attention}.{name} should go from d_model to d_model.")
        for name in self.norms:
            for end in ("weight", "bias"):
                if to_array(getattr(getattr(layer, name), end), f"{name}.{end}").shape != (d_model,):
                    fail(f"{name} should be nn.LayerNorm(d_model).")
        for name, shape in WIDTHS.items():
            part = getattr(layer, name)
            if not is_instance(part, "torch.nn.modules.linear.Linear"):
                fail(f"{name} should be an nn.Linear.")
            if to_array(part.weight, f"{name}.weight").shape != shape(d_model, d_ff):
                fail(f"{name} does not have the right widths.")
            if settled(part.bias) is None:
                fail(f"{name} should have a bias.")
        if others:
            fail(f"The layer has parameters beside those of its parts: {', '.join(others)}.")

    def gradients(self, pair, inputs, masks):
        """Demand equal gradients of all numbers and of the inputs, a dict of tensors by what a student calls them."""
        arguments = *inputs.values(), *masks
        self.same(pair, arguments)
        self.set_seed()
        found, wanted = (parameter_gradients(layer, *arguments) for layer in pair)
        for name in wanted:
            if found.get(name) is None:
                fail(f"No gradient reaches {name}.")
            compare(found[name], wanted[name], f"the gradient of {name}", atol=1e-3)
        found, wanted = (gradients(layer, *arguments, wrt=tuple(range(len(inputs)))) for layer in pair)
        for what, one, other in zip(inputs, found, wanted, strict=True):
            if one is None:
                fail(f"No gradient reaches {what}.")
            compare(one, other, f"the gradient of {what}", atol=1e-3)
