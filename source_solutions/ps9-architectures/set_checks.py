"""What the hidden tests of ps9 share: a student's network beside the reference, with the same numbers in both."""

import math
from itertools import permutations

import numpy as np
import torch

from autograder.checks import (
    CheckFailed,
    changes_its_input,
    compare,
    fail,
    is_instance,
    observe,
    parameter_gradients,
    to_array,
)

SHAPES = [(8, 1, 3, 3), (16, 8, 3, 3), (320, 576), (120, 320), (4, 120)]
ORDERS = list(permutations(range(3)))  # in which channels, height and width may be laid in a row


def images(rng, B):
    """Half are like photographs, with values from 0 to 1, half are noise of both signs."""
    noise = 2 * rng.normal(size=(B, 1, 28, 28))
    noise[::2] = rng.random(size=noise[::2].shape)
    return torch.tensor(noise.astype(np.float32))


def shapes_of(model):
    return [(name, tuple(parameter.shape)) for name, parameter in model.named_parameters()]


def fitting_parts(model, function):
    """Name and shape of each parameter of what `function` answered, which must be those of the table."""
    if not is_instance(model, "torch.nn.modules.module.Module"):
        fail(f"{function}() should return a PyTorch module (nn.Module).")
    found = shapes_of(model)
    sizes = sorted(math.prod(shape) for _, shape in found)
    observe("sizes of the parameters", sizes, beside=True)
    if sizes != sorted(math.prod(size) for shape in SHAPES for size in (shape, shape[:1])):
        fail(
            "The layers are not those of the table, so that the grader's weights do not fit: a weight and a bias for "
            "each of two convolutions and three linear layers are looked for, by their number of entries."
        )
    return found


def load(model, weights, found):
    """Put the weights where their number of entries fits; a matrix may stand for multiplication from the right."""
    by_size = {array.size: array for array in weights}
    state = {}
    for name, shape in found:
        array = by_size[math.prod(shape)]
        if shape[0] != len(array) == shape[-1]:
            array = array.reshape(len(array), -1).T
        state[name] = torch.tensor(array.reshape(shape))
    model.load_state_dict(state, strict=False)  # buffers of the student's own stay as they are


def columns(order):
    """Which of our 576 features stands at each place of a row laid in this order of the axes."""
    return np.arange(576).reshape(16, 6, 6).transpose(order).ravel()


class Network:
    """The judgement of one network. build, right: make the student's and the reference's. name: of the function.

    scales: of the weights of the five layers, with which activations reach beyond 6 and logits are about 1. What is
    the student's is looked up when it is called, in a check: it may be missing.
    """

    def __init__(self, build, right, name, scales):
        self.build, self.right, self.name, self.scales = build, right, name, scales

    def random_weights(self, rng):
        """Weights and biases of the five layers, float32."""
        found = []
        for shape, scale in zip(SHAPES, self.scales, strict=True):
            found.append(scale / np.sqrt(np.prod(shape[1:])) * rng.normal(size=shape))
            found.append(0.3 * rng.normal(size=shape[0]))
        return [array.astype(np.float32) for array in found]

    def right_model(self, weights, order):
        """The reference that does with our order of the features what the weights do with another."""
        ours = list(weights)
        ours[4] = np.empty_like(weights[4])
        ours[4][:, columns(order)] = weights[4]
        right = self.right()
        load(right, ours, shapes_of(right))
        return right

    def same(self, model, weights, *batches):
        """Demand the reference's logits for all batches; returns the order in which the student lays out features."""
        found, changed = [], False
        for batch in batches:
            found.append(model(batch.clone()))
            changed = changed or bool(getattr(model, "_changed", None))
        problem = None
        for order in ORDERS:
            right = self.right_model(weights, order)
            try:
                for logits, batch in zip(found, batches, strict=True):
                    with torch.no_grad():
                        compare(logits, right(batch), "`logits`", atol=1e-4)
                if changed:
                    changes_its_input("forward")
                return order
            except CheckFailed as failed:
                problem = problem or failed
        raise problem

    def logits(self, rng):
        """Demand the logits with given weights, for one image and for several."""
        model = self.build()
        found = fitting_parts(model, self.name)
        weights = self.random_weights(rng)
        load(model, weights, found)
        batches = images(rng, 5), images(rng, 1), torch.zeros(2, 1, 28, 28)
        try:
            self.same(model, weights, *batches)
        except CheckFailed as failed:
            model.eval()
            try:
                self.same(model, weights, *batches)
            except CheckFailed:
                raise failed from None
            fail(
                "After model.eval() your logits are right, in training mode they are not. Is there dropout? "
                "It sets numbers to zero at random while training; here nothing is dropped."
            )
        again, others = self.build(), self.random_weights(rng)
        load(again, others, found)
        again.eval()
        self.same(again, others, images(rng, 3))
        try:
            self.same(model, weights, images(rng, 2))
        except CheckFailed:
            fail(f"Two calls of {self.name}() gave one and the same network; each should make a new one.")

    def gradients(self, rng):
        """Demand the gradients that reach the five layers."""
        model = self.build()
        found = fitting_parts(model, self.name)
        weights, batch = self.random_weights(rng), images(rng, 3)
        load(model, weights, found)
        order = self.same(model, weights, batch)
        right = self.right_model(weights, order)
        expected = {g.size: g for g in parameter_gradients(right, batch).values()}
        expected[576 * 320] = expected[576 * 320][:, columns(order)]
        mine = parameter_gradients(model, batch)
        for name, shape in found:
            if mine.get(name) is None:
                fail(f"No gradient reaches the parameter {name}.")
            wanted = expected[math.prod(shape)]
            gradient = to_array(mine[name], f"the gradient of {name}")
            if shape[0] != len(wanted) == shape[-1]:
                gradient = gradient.reshape(-1, len(wanted)).T
            size = np.abs(wanted).max()
            compare(gradient.reshape(wanted.shape) / size, wanted / size, f"the gradient of {name}", atol=0.02)
