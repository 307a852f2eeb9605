"""What the hidden tests of ps1's similarities of words share."""

WORDS = ["dog", "dogs", "god", "cold", "old", "three", "tree", "a"]


def some_text(rng, most, spaces=(" ",)):
    """One to `most` words, some of them repeated."""
    return "".join(rng.choice(WORDS) + rng.choice(spaces) for _ in range(rng.integers(1, most + 1))).rstrip(" ")
