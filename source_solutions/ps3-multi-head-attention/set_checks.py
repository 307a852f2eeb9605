"""What the hidden tests of ps3 share."""


def some_mask(rng, *shape):
    """A random mask in which every row has a True and a False."""
    mask = rng.random(shape) < 0.5
    for row in mask.reshape(-1, shape[-1]):
        first, second = rng.permutation(shape[-1])[:2]
        row[first], row[second] = True, False
    return mask
