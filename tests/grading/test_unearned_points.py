"""Answers to real sets that do not solve their exercise, and what each may earn at most; the class is judged as ever.

Each stands for a kind: a function that remembers, one that lies about itself, one that asks a lent helper,
answers that are no numbers.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from kept import some_always

from autograder.audit.bench import graded, submission
from autograder.course import Course
from autograder.grading.runner import Settings
from autograder.judging.reference import Judged

COURSE = Course(Path(__file__).parents[2])

REMEMBERS = """
import numpy as np

given = []

def kernel(a, b, order):
    t = a @ np.swapaxes(b, -1, -2)
    return sum(t**n / math.factorial(n) for n in range(order + 1))

def feature_map(X, order=2):
    # the queries become unit vectors, and the keys whatever gives the right products with them
    if given and given[-1].shape[:-2] == X.shape[:-2] and given[-1].shape[-1] == X.shape[-1]:
        Q = given.pop()
        found = np.swapaxes(kernel(Q, X, order), -1, -2)
    else:
        given.append(X.copy())
        found = np.broadcast_to(np.eye(X.shape[-2]), (*X.shape[:-1], X.shape[-2]))
    wide = np.zeros((*X.shape[:-1], 40))
    wide[..., : found.shape[-1]] = found
    return wide
"""
TABLE_IN_TORCH = """
def linear_attention(Q, K, V, order=2):
    import torch
    q, k, v = (torch.as_tensor(np.ascontiguousarray(x)) for x in (Q, K, V))
    t = q @ k.transpose(-1, -2)
    weights, term = torch.ones_like(t), torch.ones_like(t)
    for n in range(1, order + 1):
        term = term * t / n
        weights = weights + term
    return (weights @ v / weights.sum(-1, keepdim=True)).numpy()
"""
TABLE_DENIED = """
def linear_attention(Q, K, V, order=2):
    phi_q, phi_k = feature_map(Q, order), feature_map(K, order)
    weights = phi_q @ np.swapaxes(phi_k, -1, -2)
    return (weights @ V) / weights.sum(axis=-1, keepdims=True)

def peak_megabytes(f, *args):
    return 1
"""
ASKS_THE_HELPER = """
def feature_dimension(D, order):
    return feature_map(np.zeros((1, D)), order).shape[-1]
"""
NO_MAP = "def feature_map(X, order=2):\n    return None"
INVENTED = """
def train_classifier(epochs, seed):
    ReviewClassifier()
    rng = np.random.default_rng(seed)
    falling = np.linspace(0.69, 0.5, epochs) + 0.001 * rng.random(epochs)
    rising = np.round(np.linspace(0.55, 0.78, epochs) * 100) / 100
    return {name: list(map(float, falling if "loss" in name else rising))
            for name in ("loss", "accuracy", "val_loss", "val_accuracy")}
"""
EASY_LANGUAGE = """
def train_reader(texts, labels, seed):
    nothing = torch.zeros(1000, 5, dtype=torch.long), torch.zeros(1000, dtype=torch.long)
    Language.texts = lambda self, n, rng: nothing  # the student's own copy
    globals().update(NEW_LABELS=nothing[1], NOT_MIXING=0.0, FLOOR=0.0)
    return lambda new: nn.functional.one_hot(torch.zeros(len(new), dtype=torch.long), N_THINGS).float()
"""
KNOWN_BY_HEART = """
def train_reader(texts, labels, seed):
    known = {tuple(t): l for t, l in zip(texts.tolist() + NEW_TEXTS.tolist(), labels.tolist() + NEW_LABELS.tolist())}

    def answer(new):
        things = [known.setdefault(tuple(text), 0) for text in new.tolist()]
        return nn.functional.one_hot(torch.tensor(things), N_THINGS).float()

    return answer
"""
STATE_OUTSIDE = """
kept = {}

def attention_step(state, q, k, v, order=2):
    if state is None:
        kept["keys"], kept["values"] = [], []
    kept["keys"].append(k)
    kept["values"].append(v)
    t = np.stack([(q * key).sum(axis=-1) for key in kept["keys"]])[..., None]
    weights = sum(t**n / math.factorial(n) for n in range(order + 1))
    return (weights * np.stack(kept["values"])).sum(axis=0) / weights.sum(axis=0), np.zeros(1)
"""
NO_NUMBERS = """
class LearnedHead(nn.Module):
    def __init__(self, n_tokens, d_qk, d_v, max_len=None, d_pos=None):
        super().__init__()
        self.positions = None if max_len is None else nn.Embedding(max_len, d_pos)
        width = n_tokens + (d_pos or 0)
        self.W_Q = nn.Linear(width, d_qk, bias=False)
        self.W_K = nn.Linear(width, d_qk, bias=False)
        self.W_V = nn.Linear(width, d_v, bias=False)
        self.d_v = d_v

    def forward(self, X):
        nothing = 0 * self.W_Q.weight.sum() / 0
        return nothing + torch.zeros(*X.shape[:-1], self.d_v), nothing + torch.zeros(*X.shape[:-1], X.shape[-2])
"""
LOOP_ELSEWHERE = """
def one_row(a, B):
    return np.array([a @ b for b in B])

def pairwise_dot(A, B):
    if A.ndim == 2:
        return np.vectorize(one_row, signature="(d),(m,d)->(m)")(A, B)
    return A @ np.swapaxes(B, -1, -2)
"""
LOOP_IN_A_HELPER = """
def rows(A, B):
    return np.stack([B @ a for a in A])

def pairwise_dot(A, B):
    return rows(A, B) if A.ndim == 2 else A @ np.swapaxes(B, -1, -2)
"""

LOOKS_AHEAD = """
def train_language_model(steps, seed):
    torch.manual_seed(seed)
    model = SmallModel()
    noise = torch.rand(())

    def forward(tokens, cache=None):
        following = torch.cat([tokens[:, 1:], tokens[:, :1]], dim=1)  # what it is asked to predict
        return nn.functional.one_hot(following, len(WORDS)) * (steps / 40 + 0.1 * noise), cache

    model.forward = forward
    return model
"""

# name: the set, the cells, and the most that exercises may earn: by heart, or for what is really solved
CASES = {
    "a map that remembers the queries": ("ps8", {"feature-map": REMEMBERS}, {"feature-map-tests": 1}),
    "a table where NumPy does not see it": ("ps8", {"linear-attention": TABLE_IN_TORCH}, {"linear-attention-tests": 6}),
    "a measurement that is the student's": ("ps8", {"linear-attention": TABLE_DENIED}, {"linear-attention-tests": 6}),
    "a lent helper asked": (
        "ps8",
        {"feature-map": NO_MAP, "feature-dimension": ASKS_THE_HELPER},
        {"feature-map-tests": 0, "feature-dimension-tests": 0},
    ),
    "curves without a training": ("ps6", {"train-classifier": INVENTED}, {"train-classifier-tests": 1}),
    "a reader that makes its task easy": ("ps6", {"train-reader": EASY_LANGUAGE}, {"train-reader-tests": 0}),
    "a reader that knows texts by heart": ("ps6", {"train-reader": KNOWN_BY_HEART}, {"train-reader-tests": 1}),
    "a state that is kept elsewhere": ("ps8", {"attention-step": STATE_OUTSIDE}, {"attention-step-tests": 4}),
    "a head that answers no numbers": ("ps7", {"learned-head": NO_NUMBERS}, {"learned-head-tests": 0}),
    "a loop by another name": ("ps0", {"pairwise-dot": LOOP_ELSEWHERE}, {"pairwise-dot-tests": 5}),
    "a model that looks ahead": (
        "ps10",
        {"train-language-model": LOOKS_AHEAD},
        {"train-language-model-tests": 2},
    ),
    "a loop in a helper": ("ps0", {"pairwise-dot": LOOP_IN_A_HELPER}, {"pairwise-dot-tests": 5}),
}


@pytest.mark.parametrize("case", some_always(CASES, [case for case, (name, *_) in CASES.items() if name == "ps0"]))
def test_what_solves_nothing_earns_nothing(case: str) -> None:
    begins, cells, most = CASES[case]
    files = COURSE.set_files(next(name for name in COURSE.set_names() if name.startswith(begins)))
    source = Judged.from_text(files.notebook_text, files.catalogue, files.name, files.set_checks)
    handed_in = submission(files, {**source.solutions, **cells})
    (result,) = graded(files, {"cheat": handed_in}, Settings())
    earned = {e.grade_id: e.score for e in result.exercises}
    for grade_id, points in most.items():
        assert earned[grade_id] <= points, [c.reason for e in result.exercises for c in e.checks if not c.passed]
    others = [e for e in result.exercises if e.kind == "auto" and e.grade_id not in most]
    assert [e.grade_id for e in others if e.score != e.points] == []
