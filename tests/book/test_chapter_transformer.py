"""Every claim that `transformer` measures, asserted on the executed chapter."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("transformer")


# --- the topics have their place ------------------------------------------------------------------------


@pytest.mark.parametrize(
    "label",
    [
        "tf-block",
        "tf-parameters",
        "tf-encoder",
        "tf-decoder",
        "tf-sos",
        "tf-teacher-forcing",
        "tf-three-kinds",
        "tf-today",
        "tf-torch",
        "tf-translator",
        "tf-forced-greedy",
        "tf-cross-map",
        "tf-classifier",
        "tf-pretraining",
        "tf-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


@pytest.mark.parametrize("label", ["tf-mask-trap", "tf-shift-trap", "tf-defaults-trap", "tf-curves-trap"])
def test_trap_has_its_label(page, label):
    assert f"({label})=" in page.source
    assert page.article.find(id=label)


# --- blocks ---------------------------------------------------------------------------------------------


def test_only_attention_mixes_tokens(page):
    assert page.value("thinking_apart") == 0
    assert page.value("block_apart") > 1e-3


def test_parameters_of_the_first_transformer(page):
    total = 6 * (4 * 512**2 + 2 * 512 * 2048) + 6 * (8 * 512**2 + 2 * 512 * 2048) + 37_000 * 512
    assert page.value("count_total") == pytest.approx(total / 1e6)
    assert 62 < page.value("count_total") < 65
    assert page.value("count_share") == pytest.approx(2 / 3)
    assert page.value("count_words") == pytest.approx(37_000 * 512 / total)


def test_parameters_of_a_model_of_today(page):
    looking, thinking = 4096 * (2 * 4096 + 2 * 1024), 3 * 4096 * 14_336
    total = 32 * (looking + thinking) + 2 * 128_256 * 4096 + 65 * 4096
    assert page.value("today_total") == pytest.approx(total / 1e9) == pytest.approx(8.03, abs=0.005)
    assert page.value("today_share") == pytest.approx(thinking / (looking + thinking))
    assert page.value("today_words") == pytest.approx(2 * 128_256 * 4096 / total)


def test_predictions_do_not_reach_the_future(page):
    assert page.value("future_reach") == 0


# --- teacher forcing ------------------------------------------------------------------------------------


def test_the_causal_mask_makes_one_pass_equal_to_steps(page):
    with_mask, without = page.printed("prefixes = [fed[:t]").strip().splitlines()
    assert [float(gap) for gap in re.search(r"\[(.*)\]", with_mask)[1].split()] == pytest.approx([0] * 4, abs=1e-12)
    *earlier, last = [float(gap) for gap in re.search(r"\[(.*)\]", without)[1].split()]
    assert min(earlier) > 0 == last


def test_reach_of_masks(page):
    printed = page.printed('stacks = {"full"')
    assert printed.count("True") == 3 and "False" not in printed


# --- PyTorch --------------------------------------------------------------------------------------------


def test_our_blocks_are_pytorchs(page):
    gaps = re.search(r"reading block (\S+), writing block (\S+)", page.printed("norm_first = False"))
    assert all(float(gap) < 1e-12 for gap in gaps.groups())


@pytest.mark.slow
def test_the_translators_translate(page):
    assert page.value("pairs_train") == 5000
    assert page.value("pairs_new") == page.value("pairs_kept") == 300
    assert page.value("translator_parameters") < 150_000
    assert ends(page.value("final_new"))[0] > 90
    assert ends(page.value("final_pairs"))[0] > 60
    assert float(page.value("floor_new")) < 20
    assert 2 <= page.value("example_right") <= 5


@pytest.mark.slow
def test_greedy_and_forced_part_after_the_first_mistake(page):
    """The page itself asserts that wholly right sentences are the same either way."""
    assert 0.1 < ends(page.value("whole_alone"))[0] < ends(page.value("whole_alone"))[1] < 1
    assert float(page.value("gap_edit")) < 0.85 * float(page.value("gap_place"))


def test_without_the_shift_the_loss_is_low_and_nothing_is_right(page):
    assert ends(page.value("copy_loss"))[0] < ends(page.value("shift_loss"))[0]
    assert page.value("copy_right") == "0%"


@pytest.mark.slow
def test_cross_attention_shows_the_changed_order(page):
    assert min(page.value("map_chat"), page.value("map_noir")) > 0.3
    assert 3 <= page.value("map_runs") <= 5


def test_overfitting_is_visible(page):
    best_loss, last_loss = ends(page.value("best_loss")), ends(page.value("val_loss_50"))
    assert best_loss[1] < last_loss[1] and best_loss[0] < last_loss[0]
    assert ends(page.value("train_loss_50"))[1] < 0.1
    assert ends(page.value("best_epochs"))[1] <= 40
    assert ends(page.value("val_right_50"))[1] < 1


def test_text_without_labels_helps_by_its_company(page):
    for labels in (10, 40):
        assert ends(page.value(f"pre_{labels}"))[1] > ends(page.value(f"plain_{labels}"))[1]
        assert ends(page.value(f"mixed_{labels}"))[1] < ends(page.value(f"pre_{labels}"))[1]


# --- answers to quizzes and exercises -------------------------------------------------------------------


def test_counts_in_the_solutions():
    assert 12 * 768**2 == 7_077_888
    assert 12 * 7_077_888 == 84_934_656
    assert 50_257 * 768 == 38_597_376
    assert 84_934_656 + 38_597_376 + 1024 * 768 == 124_318_464
    assert 3 * 768 * 2048 == 8 * 768**2
    assert 12 * (2 * 768**2 - 2 * 768**2 // 3) == 9_437_184


def test_numpy_part_and_solutions_run_without_jupyter_or_torch(page, tmp_path):
    """As in the browser's own Python: nothing but NumPy and Matplotlib. The solutions' code runs after it."""
    cells = [cell for cell in page.notebook.cells if cell.cell_type == "code"]
    text = "\n\n".join(cell.source for cell in cells if "torch" not in cell.metadata.get("tags", []))
    solutions = re.findall(r"^````\{solution\}.*?^```python\n(.*?)^```$", page.source, re.S | re.M)
    assert len(solutions) == 3
    blocked = "import sys\nfor name in ('IPython', 'myst_nb', 'jupyterquiz', 'torch'):\n    sys.modules[name] = None\n"
    script = tmp_path / "chapter.py"
    script.write_text("\n\n".join([blocked + text, *solutions]), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "-W", "error", str(script)],
        cwd=tmp_path,
        env={"MPLBACKEND": "Agg", "MPLCONFIGDIR": str(tmp_path), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert "position 0: reads <SOS>" in done.stdout
    assert done.stdout.rstrip().endswith("4")


def test_a_norm_over_tokens_leaks_the_future():
    """The answer to the first exercise."""
    x = np.random.default_rng(0).normal(size=(3, 4))
    moved = x.copy()
    moved[2] += 1

    def wrong(a):
        return (a - a.mean(axis=0)) / np.sqrt(a.var(axis=0) + 1e-5)

    assert np.abs(wrong(moved)[0] - wrong(x)[0]).max() > 0.01


def test_the_chapter_does_not_print_the_solutions_of_its_set(page):
    code = "\n".join(cell.source for cell in page.notebook.cells if cell.cell_type == "code")
    for name in ("greedy_decode", "teacher_forced_logits", "train_classifier"):
        assert f"def {name}(" not in code
    for name in ("EncoderLayer", "DecoderLayer"):
        assert f"class {name}(" not in code
