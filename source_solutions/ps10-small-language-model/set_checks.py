"""What the hidden tests of ps10's CachedAttention share: a student's module beside the reference's."""

import numpy as np
import torch

from autograder.checks import (
    changes_its_input,
    compare,
    fail,
    is_instance,
    later,
    parameter_gradients,
    settled,
    to_array,
)

NAMES = ("W_Q", "W_K", "W_V", "W_O")


def tensor(array):
    return torch.tensor(np.asarray(array), dtype=torch.float32)


class Attentions:
    """The judgement of a CachedAttention. build: makes the student's (`later`). right: makes the reference's."""

    def __init__(self, build, right):
        self.build, self.right = build, right

    def twins(self, rng, d_model, n_heads, n_groups):
        """The student's module and the reference's, with the same random numbers."""
        right, mine = self.right(d_model, n_heads, n_groups), self.build(d_model, n_heads, n_groups)
        state = {
            name: tensor((1.6 if name[2] in "QK" else 1.0) * rng.normal(size=tuple(value.shape)) / np.sqrt(d_model))
            for name, value in right.state_dict().items()
        }
        for name in NAMES:
            getattr(mine, name)  # says which one is missing
        right.load_state_dict(state)
        # a bias that should not be there costs the check on it; buffers of the student's own stay as they are
        no_bias = {f"{name}.bias": torch.zeros(len(state[f"{name}.weight"])) for name in NAMES}
        later(mine.load_state_dict, state | no_bias, strict=False)
        return mine, right

    def read(self, mine, x, cache, d_head, n_groups, before):
        """One call of the student's module: its output and its cache, of the right form."""
        given = x.clone()
        found = settled(mine(given) if cache is None else mine(given, cache))
        if not isinstance(found, (tuple, list)) or len(found) != 2:
            fail("forward should return two things: output, cache.")
        output, cache = found
        if not isinstance(settled(cache), (tuple, list)) or len(cache) != 2:
            fail("The cache should be a tuple of two tensors: keys, values.")
        shape = (len(x), n_groups, before + x.shape[1], d_head)
        for part, what in zip(cache, ("keys", "values"), strict=True):
            size = to_array(part, f"the {what} of the cache").shape
            if size != shape:
                fail(f"The {what} of the cache have the shape {size}; (B, n_groups, T_so_far, d_head) is {shape} here.")
        if to_array(output, "the output").shape != tuple(x.shape):
            fail(
                f"The output has the shape {to_array(output).shape}; for the new tokens it should be {tuple(x.shape)}."
            )
        if getattr(mine, "_changed", None) or not torch.equal(given, x):
            changes_its_input("forward")
        return output, (cache[0], cache[1])

    def same(self, pair, x, pieces):
        """Demand the reference's outputs of the whole text, however it is cut into pieces of these lengths."""
        mine, right = pair
        with torch.no_grad():
            expected, kept = right(x)
        n_groups, d_head = kept[0].shape[1], kept[0].shape[3]
        cache, before = None, 0
        for n in pieces:
            output, cache = self.read(mine, x[:, before : before + n], cache, d_head, n_groups, before)
            what = f"the output of {n} new token{'s' * (n > 1)} after {before} old ones (text cut as {pieces})"
            compare(output, expected[:, before : before + n], what, atol=1e-4)
            before += n

    def parts(self, rng, d_model, n_heads, n_groups):
        """Demand layers with the names and shapes of the task, and nothing else that learns."""
        mine, d_head = self.build(d_model, n_heads, n_groups), d_model // n_heads
        for name in NAMES:
            layer, rows = getattr(mine, name), (n_groups * d_head if name[2] in "KV" else d_model)
            if not is_instance(layer, "torch.nn.modules.linear.Linear"):
                fail(f"`{name}` should be an nn.Linear.")
            if to_array(layer.weight, f"the weight of `{name}`").shape != (rows, d_model):
                fail(
                    f"`{name}` should go from {d_model} to {rows} where d_model, n_heads and n_groups are "
                    f"{d_model}, {n_heads} and {n_groups}."
                )
            if settled(layer.bias) is not None:
                fail(f"`{name}` should have no bias.")
        learned = parameter_gradients(mine, tensor(rng.normal(size=(2, 3, d_model))), of=0)
        others = sorted(set(learned) - {f"{name}.weight" for name in NAMES})
        if others:
            fail(f"The module has parameters beside those of the four layers: {', '.join(others)}.")

    def far_below_zero(self, rng):
        """Scores of about -20,000: a mask of a large finite number lets later tokens in."""
        mine, right = self.twins(rng, 8, 2, 1)
        state = {name: tensor(rng.normal(size=tuple(v.shape)) / 3) for name, v in right.state_dict().items()}
        # the column of ones in x gives every query the slow pair (1, 0) times a large number, every key its opposite
        state["W_Q.weight"] = torch.zeros(8, 8)
        state["W_Q.weight"][[2, 6], 0] = 200.0
        state["W_K.weight"] = torch.zeros(4, 8)
        state["W_K.weight"][2, 0] = -200.0
        right.load_state_dict(state)
        later(mine.load_state_dict, state, strict=False)
        x = tensor(rng.normal(size=(2, 4, 8)))
        x[:, :, 0] = 1.0
        with torch.no_grad():
            expected = right(x)[0]
        output, _ = self.read(mine, x, None, 4, 1, 0)
        # the first token sees itself alone, whatever rounding does to the others' scores
        compare(to_array(output)[:, :1], expected[:, :1], "the output of the first token, with scores of -20,000", 1e-4)

    def continued_twice(self, rng, pair):
        """Demand that a cache serves two continuations, and that texts can be read in turns."""
        mine, right = pair
        x, y, z = (tensor(rng.normal(size=(2, T, 16))) for T in (4, 3, 3))
        with torch.no_grad():
            wanted = [right(torch.cat([x, end], dim=1))[0] for end in (y, z)]
            other = right(y)[0]
        _, cache = self.read(mine, x, None, 4, 2, 0)
        for end, expected, what in ((y, wanted[0], "first"), (z, wanted[1], "second")):
            found, _ = self.read(mine, end, cache, 4, 2, 4)
            compare(found, expected[:, 4:], f"the {what} continuation of one cache", atol=1e-4)
        found, _ = self.read(mine, y, None, 4, 2, 0)
        compare(found, other, "a new text after another one", atol=1e-4)
        found, _ = self.read(mine, y, cache, 4, 2, 4)
        compare(found, wanted[0][:, 4:], "the first text, gone on with after another one", atol=1e-4)

    def gradients(self, rng, pair):
        """Demand the reference's gradients of all four layers, for a text in one go and from a cache."""
        x, end = tensor(rng.normal(size=(2, 5, 16))), tensor(rng.normal(size=(2, 2, 16)))
        with torch.no_grad():
            kept = pair[1](x)[1]
        for inputs in ((x,), (end, tuple(part.detach() for part in kept))):
            found, wanted = (parameter_gradients(module, *inputs, of=0) for module in pair)
            for name in wanted:
                if found.get(name) is None:
                    fail(f"No gradient reaches {name}.")
                if len(inputs) == 1:  # from a cache of turned keys alone: who keeps them unturned has others
                    compare(found[name], wanted[name], f"the gradient of {name}", atol=1e-3)
