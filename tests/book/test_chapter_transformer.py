"""Every claim that `transformer` measures, asserted on the executed chapter."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from book_build import chapter


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
    assert page.value("block_apart") > 0.1


def test_parameters_of_the_first_transformer(page):
    total = 6 * (4 * 512**2 + 2 * 512 * 2048) + 6 * (8 * 512**2 + 2 * 512 * 2048) + 37_000 * 512
    assert page.value("count_total") == pytest.approx(total / 1e6)
    assert 62 < page.value("count_total") < 65
    assert page.value("count_share") == pytest.approx(2 / 3)
    assert page.value("count_words") == pytest.approx(37_000 * 512 / total)


def test_order_is_seen_through_the_places_only(page):
    assert page.value("order_with") > 0.1
    assert page.value("order_without") < 1e-9


def test_predictions_reach_the_past_and_the_whole_source(page):
    assert page.value("future_reach") == 0
    assert page.value("past_reach") > 1e-3
    assert page.value("source_reach") > 0.05


# --- teacher forcing ------------------------------------------------------------------------------------


def test_the_causal_mask_makes_one_pass_equal_to_steps(page):
    printed = page.printed("step_by_step = np.stack")
    assert float(re.search(r"largest difference: (\S+)", printed)[1]) < 1e-12
    assert page.value("unmasked_first") > 0.1
    assert page.value("unmasked_last") == "0" or "⁻" in page.value("unmasked_last")
    assert "⁻" in page.value("forcing_gap") or page.value("forcing_gap") == "0"
    positions = page.printed("positions at once")
    assert "100 positions at once, 5050 in steps" in positions


def test_reach_of_masks(page):
    printed = page.printed('stacks = {"full"')
    assert printed.count("True") == 3 and "False" not in printed
    assert [page.value(f"window_{n}") for n in (1, 2, 3)] == [2, 3, 4]


# --- PyTorch --------------------------------------------------------------------------------------------


def test_our_blocks_are_pytorchs(page):
    gaps = re.search(r"reading block (\S+), writing block (\S+)", page.printed("their_reader ="))
    assert all(float(gap) < 1e-12 for gap in gaps.groups())
    assert "⁻" in page.value("torch_reader_gap") and "⁻" in page.value("torch_writer_gap")
    assert page.value("torch_post_gap") > 0.5


def test_the_translator_translates(page):
    assert page.value("pairs_train") == 5000
    assert page.value("pairs_distinct") > 4500
    assert page.value("pairs_new") == page.value("pairs_kept") == 600
    assert page.value("translator_parameters") < 150_000
    assert page.value("final_new") > 0.97
    assert 0.8 < page.value("final_pairs") <= page.value("final_new")
    assert page.value("loss_first") > 3 > 0.1 > page.value("loss_last")
    assert page.value("example_1") == "le chat noir ne voit pas de petite étoile"


def test_its_mistakes_are_about_adjectives(page):
    failures = page.value("mistakes")
    assert failures == round(600 * (1 - page.value("final_pairs")))
    assert failures >= 1
    assert page.value("mistakes_adjective") >= 0.7 * failures
    assert page.value("mistakes_dropped") + page.value("mistakes_form") >= 0.5 * failures


def test_greedy_and_forced_part_after_the_first_mistake(page):
    """The page itself asserts that wholly right sentences are the same either way."""
    assert 0.1 < page.value("half_whole") < 0.95
    assert 0.1 < page.value("half_new") < 0.95
    assert page.value("after_words") > 50
    assert page.value("after_forced") > page.value("after_alone") + 0.05


def test_without_the_shift_the_loss_is_low_and_nothing_is_right(page):
    assert page.value("copy_loss") < 0.7 * page.value("shift_loss")
    assert page.value("copy_right") == 0
    assert "chat" not in page.value("copy_sample")


def test_cross_attention_shows_the_changed_order(page):
    assert 0 <= page.value("map_head") < 4
    assert page.value("map_chat") > 0.3
    assert page.value("map_noir") > 0.3
    assert 0 < page.value("map_end") <= 1
    assert 0 <= page.value("map_de_a") <= 1 and 0 <= page.value("map_de_not") <= 1


def test_overfitting_is_visible(page):
    best = page.value("best_epoch")
    assert 10 < best < 30
    assert page.value("best_loss") < page.value("val_loss_10")
    assert page.value("best_loss") + 0.05 < page.value("val_loss_30") < page.value("val_loss_50")
    assert page.value("train_loss_50") < 0.01
    assert page.value("train_right_10") < 0.95
    assert page.value("train_right_50") == 1
    assert page.value("val_right_10") < page.value("val_right_50") < 0.95
    assert abs(page.value("val_right_30") - page.value("val_right_50")) < 0.03
    assert abs(page.value("best_right") - page.value("val_right_50")) < 0.08


def test_text_without_labels_helps_by_its_company(page):
    assert page.value("pre_10") > page.value("plain_40") + 0.02
    assert page.value("pre_10_worst") > page.value("plain_10_best") + 0.05
    assert page.value("pre_40") > page.value("plain_40_best")
    assert page.value("mixed_10") < page.value("pre_10") - 0.15
    assert page.value("mixed_40") < page.value("pre_40")
    assert page.value("company_same") > 0.15 > -0.15 > page.value("company_other")
    assert abs(page.value("company_mixed")) < 0.1


# --- answers to quizzes and exercises -------------------------------------------------------------------


def test_counts_in_the_solutions():
    assert 12 * 768**2 == 7_077_888
    assert 12 * 7_077_888 == 84_934_656
    assert 50_257 * 768 == 38_597_376
    assert 84_934_656 + 38_597_376 + 1024 * 768 == 124_318_464


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
