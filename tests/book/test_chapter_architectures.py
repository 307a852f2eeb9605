"""Every claim that `architectures` measures, asserted on the executed chapter."""

from __future__ import annotations

import re
import subprocess
import sys

import numpy as np
import pytest
from book_build import chapter, ends


@pytest.fixture(scope="module")
def page():
    return chapter("architectures")


@pytest.mark.parametrize(
    "label",
    [
        "ar-four",
        "ar-ssm",
        "ar-path",
        "ar-cost",
        "ar-experts",
        "ar-cannot",
        "ar-length",
        "ar-torch",
        "ar-vit",
        "ar-cnn",
        "ar-shuffle",
        "ar-applications",
        "ar-exercises",
    ],
)
def test_topic_has_its_place(page, label):
    assert page.article.find(id=label)


def test_who_sees_whom(page):
    assert page.value("reach_mlp") == page.value("reach_attention") == page.value("reach_all") == 81
    assert page.value("reach_conv") == 3 * 9 - 2
    assert page.value("reach_rnn") == page.value("reach_ssm") == 9 * 10 // 2


def test_a_linear_recurrence_is_computed_either_way(page):
    assert page.printed("def all_at_once").count("True") == 2


def test_paths_and_fading(page):
    assert page.value("path_conv") == "4, 8, 16, 32"
    assert page.value("path_conv_33") == 32
    assert page.value("path_attention") == 1
    assert ends(page.value("fade_step"))[1] < 0.95
    assert 0.85 < ends(page.value("fade_attention"))[0] <= ends(page.value("fade_attention"))[1] < 1.15


def test_costs_grow_with_length_or_width(page):
    assert (page.value("cost_attention_n"), page.value("cost_attention_d")) == (4, 2)
    assert (page.value("cost_recurrence_n"), page.value("cost_recurrence_d")) == (2, 4)
    assert page.value("cost_even") == 2 * 4096
    assert page.value("cost_mixing") == 4096 // 2


def test_symmetries(page):
    assert page.value("shift_mlp") > 0.1
    assert page.value("order_causal") > 0.1
    printed = page.printed("LAYERS = (mlp_mixer")
    assert [line.split()[0] for line in printed.splitlines() if line.endswith("False")] == ["mlp_mixer"]


def test_the_readout_counts_by_itself_and_lookup_needs_attention(page):
    assert ends(page.value("majority_nothing_mean"))[0] > 0.9
    assert ends(page.value("majority_nothing_last"))[1] < 0.6
    assert ends(page.value("lookup_attention_last"))[0] > ends(page.value("lookup_others"))[1] + 0.1


def test_equal_parameters_unequal_work(page):
    assert page.value("cnn_parameters") == 224_892
    assert page.value("cnn_layers") == "80 + 1,168 + 184,640 + 38,520 + 484"
    assert page.value("cnn_learn") == 400 and page.value("cnn_check") == 319
    assert min(ends(page.value("cnn_pooled"))[0], ends(page.value("cnn_strided"))[0]) > 0.7
    assert page.value("cnn_paired") < page.value("cnn_error")
    assert page.value("cnn_multiply_pooled") == 222_336 and page.value("cnn_multiply_strided") == 55_584
    assert page.value("cnn_multiply_ratio") == 4
    assert ends(page.value("cnn_shifted_pooled"))[0] < ends(page.value("cnn_pooled"))[0] - 0.1


def test_scrambled_pixels(page):
    for in_order, scrambled in zip(
        ends(page.value("shuffle_mlp")), ends(page.value("shuffle_mlp_scrambled")), strict=True
    ):
        assert in_order == pytest.approx(scrambled, abs=0.01)


def test_numpy_part_runs_without_jupyter_or_torch(page, tmp_path):
    cells = [cell for cell in page.notebook.cells if cell.cell_type == "code"]
    text = "\n\n".join(cell.source for cell in cells if "torch" not in cell.metadata.get("tags", []))
    absent = ("IPython", "myst_nb", "jupyterquiz", "torch", "sklearn")
    blocked = f"import sys\nfor name in {absent}:\n    sys.modules[name] = None\n"
    script = tmp_path / "chapter.py"
    script.write_text(blocked + text, encoding="utf-8")
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
    assert re.search(r"attention +\[1, 1, 1, 1\]", done.stdout)


def test_answers_to_exercises():
    assert 32 // 2 == 16
    assert sum(2**layer for layer in range(5)) == 31
    assert np.log(0.5) / np.log([0.7, 0.97]) == pytest.approx([1.943, 22.76], abs=0.01)
    assert pytest.approx(0.99931, abs=1e-5) == 0.5 ** (1 / 1000)
