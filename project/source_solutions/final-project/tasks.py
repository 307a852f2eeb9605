"""Three tasks for the final project, with generated data. Needs NumPy only; a seed gives the same data every time.

    data = recall(seed=0)
    inputs, answers = data.train             # to learn from
    inputs, answers = data.choose            # to choose with, as often as you like
    data.floors                              # what simple rules reach on the held-back data
    inputs, answers = data.held_back.open()  # once, at the very end

`answers` are whole numbers from 0 to `data.classes` - 1, and a score is the share of right ones. For a task of your own
make a `Data` yourself.
"""

from dataclasses import dataclass

import numpy as np

SIZES = 4000, 1000, 2000  # of the data to learn from, to choose with, and held back


class HeldBack:
    """Data that is looked at once: `opened` counts how often it was."""

    def __init__(self, inputs, answers):
        self._inputs, self._answers, self.opened = inputs, answers, 0

    def open(self):
        """The inputs (N, ...) and answers (N,)."""
        self.opened += 1
        return self._inputs, self._answers


@dataclass
class Data:
    """A task's data: (inputs, answers) to learn from and to choose with, held-back data, and floors by their names."""

    train: tuple
    choose: tuple
    held_back: HeldBack
    classes: int
    floors: dict


def score(predicted, answers):
    """The share of right answers; both (N,)."""
    return float(np.mean(np.asarray(predicted) == answers))


def recall(seed):
    """What belongs to this key? Inputs (N, 13): six pairs key, value, and at the end one of the six keys.

    Keys are 0 to 9, all six different, and drawn anew in every row, as are the values, 10 to 19. The answer is the
    value beside the key that is asked for, less 10.
    """
    rng = np.random.default_rng(seed)
    N, pairs, values = sum(SIZES), 6, 10
    keys = rng.permuted(np.tile(np.arange(10), (N, 1)), axis=1)[:, :pairs]
    shown = rng.integers(values, size=(N, pairs))
    asked, rows = rng.integers(pairs, size=N), np.arange(N)
    inputs = np.empty((N, 2 * pairs + 1), dtype=int)
    inputs[:, 0:-1:2], inputs[:, 1:-1:2], inputs[:, -1] = keys, 10 + shown, keys[rows, asked]
    data, answers = _split(rng, inputs, shown[rows, asked], values)
    table = np.zeros((10, values))  # how often each value was the answer when a key was asked for
    np.add.at(table, (data.train[0][:, -1], data.train[1]), 1)
    held = data.held_back._inputs
    data.floors |= {
        "the last value": score(held[:, -2] - 10, answers),
        "bigram: the value that most often followed the key": score(table.argmax(1)[held[:, -1]], answers),
    }
    return data


SINGULAR = ["cat", "dog", "bird", "king", "child", "teacher", "painter", "farmer"]
NOUNS = SINGULAR + [noun + "s" if noun != "child" else "children" for noun in SINGULAR]
WORDS = [*NOUNS, "the", "near", "that", "saw", ","]
NEAR, COMMA, THAT, SAW, THE = (WORDS.index(word) for word in ("near", ",", "that", "saw", "the"))


def agreement(seed):
    """Does the verb stand in the singular (0) or in the plural (1)? Inputs (N, 14): words as numbers in `WORDS`.

    "near the dogs , the cat that the kings saw that saw the child" goes on with "sleeps", for it is the cat that
    sleeps. The part before the comma is there in one sentence of two, and one or two clauses follow. Short sentences
    are filled up from the left with the number `len(WORDS)`.
    """
    rng = np.random.default_rng(seed)
    sentences, answers = [], []
    for _ in range(2 * sum(SIZES)):  # short ones come twice
        subject, *others = rng.integers(len(NOUNS), size=4).tolist()
        words = [NEAR, THE, others[0], COMMA] if rng.random() < 0.5 else []
        words += [THE, subject]
        for noun in others[1 : 2 + rng.integers(2)]:
            words += [THAT, THE, noun, SAW] if rng.random() < 0.5 else [THAT, SAW, THE, noun]
        sentences.append([len(WORDS)] * (14 - len(words)) + words)
        answers.append(subject >= len(SINGULAR))
    data, right = _split(rng, np.array(sentences), np.array(answers, dtype=int), 2)
    held = data.held_back._inputs
    is_noun = held < len(NOUNS)
    last = held.shape[1] - 1 - is_noun[:, ::-1].argmax(1)
    data.floors["nearest noun: its number"] = score(held[np.arange(len(held)), last] >= len(SINGULAR), right)
    return data


def order(seed):
    """Which bump came first? Inputs (N, 96): a noisy series with a narrow and a wide bump.

    The answer is 0 where the narrow one comes first, and 1 where the wide one does. They stand anywhere, at least 12
    places apart, with areas from 3 to 7 and bells of width 1.5 and 3; the noise has a standard deviation of 0.3.
    There are only 500 series to learn from.
    """
    rng = np.random.default_rng(seed)
    sizes, T = (500, *SIZES[1:]), 96
    N = sum(sizes)
    first = rng.integers(6, T - 18, size=N)
    second = rng.integers(first + 12, T - 6)
    answers = rng.integers(2, size=N)
    narrow, wide = np.where(answers == 0, (first, second), (second, first))
    series = bump(T, narrow, 1.5, rng.uniform(3, 7, size=N)) + bump(T, wide, 3.0, rng.uniform(3, 7, size=N))
    data, right = _split(rng, series + rng.normal(0, 0.3, size=(N, T)), answers, 2, sizes)
    learned, known = data.train
    held = data.held_back._inputs
    distances = (learned**2).sum(1) - 2 * held @ learned.T  # squared, up to what is the same for all of `learned`
    data.floors["nearest neighbour: its answer"] = score(known[distances.argmin(1)], right)
    return data


def bump(T, centres, width, areas):
    """Series (N, T) with one bell each, of this standard deviation, around `centres` (N,) and with `areas` (N,)."""
    distances = (np.arange(T) - centres[:, None]) / width
    return areas[:, None] / (width * np.sqrt(2 * np.pi)) * np.exp(-(distances**2) / 2)


def _split(rng, inputs, answers, classes, sizes=SIZES):
    """The three parts, in which no input stands twice, with the first floor; also the held-back answers."""
    _, places = np.unique(inputs, axis=0, return_index=True)
    places = rng.permutation(places)[: sum(sizes)]
    train, choose, held = ((inputs[part], answers[part]) for part in np.split(places, np.cumsum(sizes)[:-1]))
    commonest = np.bincount(train[1], minlength=classes).argmax()
    guess = {"guess: the commonest answer": score(commonest, held[1])}
    return Data(train, choose, HeldBack(*held), classes, guess), held[1]


def features(name, inputs):
    """The few numbers (N, F) that the baseline of a task sees, the last of them 1."""
    if name == "order":  # is the highest place behind the centre of what stands out?
        smooth = np.apply_along_axis(np.convolve, 1, inputs, np.ones(5) / 5, "same")
        high = np.clip(smooth - 0.2, 0, None)
        centre = high @ np.arange(inputs.shape[1]) / (high.sum(1) + 1e-9)
        columns = (inputs.argmax(1) > centre)[:, None]
    else:  # how often is each word there, wherever it stands?
        words = np.arange(20 if name == "recall" else len(WORDS) + 1)
        columns = (inputs[:, :, None] == words).sum(1)
    return np.hstack([columns, np.ones((len(inputs), 1))])


def baseline(name, data):
    """A linear model on `features`, by least squares: its score on the held-back data, and its number of parameters.

    It reads the held-back data without counting, so that your own look stays the first.
    """
    inputs, answers = data.train
    weights = np.linalg.lstsq(features(name, inputs), np.eye(data.classes)[answers], rcond=None)[0]
    predicted = (features(name, data.held_back._inputs) @ weights).argmax(1)
    return score(predicted, data.held_back._answers), weights.size


TASKS = {"recall": recall, "agreement": agreement, "order": order}
