"""Whatever happens to a notebook on its way, honest work stands in its place again, or a sentence says why not."""

import json
import random
from copy import deepcopy

import nbformat
import pytest
from nbformat import from_dict, v4
from notebooks import (
    ANSWERS,
    ATTEND,
    ESSAY,
    NAME,
    ROOT,
    SOFTMAX,
    SOLUTION,
    TEST,
    WRITTEN,
    after,
    code,
    drop,
    extra,
    find,
    make,
    strip,
    text,
)

from autograder.course import Course
from autograder.notebook.finder import find_notebook
from autograder.notebook.places import places_of, release_view
from autograder.notebook.reader import Unreadable, read_notebook
from autograder.notebook.rebuild import rebuild, to_content

# --- the plain cases ----------------------------------------------------------------------------------------


def test_release_view_hides_solutions_and_hidden_tests(source, released):
    assert "secret_of" in nbformat.writes(source)
    for private in ("secret_of", "reference_", '"b"', "Rubric"):
        assert private not in nbformat.writes(released)
    assert find(released, "softmax").source == "def softmax(x):\n    # YOUR CODE HERE\n    raise NotImplementedError()"


def test_a_complete_submission_keeps_every_answer_and_needs_no_note(done, hand_in):
    got = hand_in(done)
    assert got.answers() == ANSWERS
    assert got.rebuilt.notes == got.rebuilt.events == got.extras == []
    assert [c.kind for c in got.rebuilt.cells][:6] == ["locked", "open", "locked", "locked", "solution", "test"]
    assert "secret_of" in got.by_id["softmax-tests"].source  # for the judge


def test_the_released_notebook_is_unanswered(released, hand_in):
    got = hand_in(released)
    assert got.answers() == {} and got.rebuilt.notes == [] and got.extras == []
    assert got.by_id["attend"].source == find(released, "attend").source


def test_blank_lines_and_trailing_blanks_are_no_answer_and_no_change(released, hand_in):
    notebook = deepcopy(released)
    for cell in notebook.cells:
        cell.source = cell.source.replace("\n", "   \n\n") + "\n\n"
    got = hand_in(notebook)
    assert got.answers() == {} and got.rebuilt.notes == [] and got.extras == []


def test_extra_cells_stay_where_they_stood(done, hand_in):
    done.cells.insert(0, extra("first = 1", cell_id="one"))
    after(done, "softmax", extra("print(softmax)", cell_id="two"))
    after(done, "attend-tests", extra("A note.", "markdown", "three"))
    got = hand_in(done)
    assert got.extras == ["first = 1", "print(softmax)", "A note."]
    assert got.order[0] == "extra-1"
    assert got.order[got.order.index("softmax") + 1] == "extra-2"
    assert got.order[got.order.index("attend-tests") + 1] == "extra-3"
    assert got.answers() == ANSWERS


def test_metadata_attachments_and_outputs_of_the_submission_are_dropped(done, hand_in, source):
    find(done, "softmax").outputs = [v4.new_output("stream", text="x" * 1000)]
    find(done, "why").attachments = {"a.png": {"image/png": "AAAA"}}
    find(done, "softmax-tests").metadata.update(tags=["skip-execution"], colab={"base_uri": "x"})
    find(done, "softmax-tests").metadata.nbgrader.points = 400
    got = hand_in(done)
    shown = from_dict(to_content(got.rebuilt, source))
    assert find(shown, "softmax").outputs == [] and "attachments" not in find(shown, "why")
    assert find(shown, "softmax-tests").metadata == find(source, "softmax-tests").metadata
    assert "tag 'skip-execution' on the test cell 'softmax-tests'" in got.events


# --- test cells and given cells -----------------------------------------------------------------------------


def test_a_deleted_test_cell_is_put_back(done, hand_in):
    drop(done, "softmax-tests", "intro")
    got = hand_in(done)
    assert "The test cell 'softmax-tests' was missing and has been put back." in got.notes
    assert "The given cell 'intro' was missing and has been put back." in got.notes
    assert got.answers() == ANSWERS


def test_an_edited_or_retyped_test_cell_is_restored(done, hand_in):
    find(done, "softmax-tests").source = "r = softmax(np.ones(2))\nassert True"
    at = done.cells.index(find(done, "attend-tests"))
    done.cells[at] = text("attend-tests", done.cells[at].source, **TEST)
    got = hand_in(done)
    assert got.extras == [] and got.answers() == ANSWERS
    assert "The test cell 'softmax-tests' was changed" in got.notes
    assert "the test cell 'attend-tests' was turned into markdown" in got.events


def test_copies_of_given_cells_are_dropped_and_foreign_text_is_kept(done, hand_in):
    copies = [deepcopy(find(done, i)) for i in ("softmax-tests", "imports", "softmax-task")]
    done.cells += copies
    find(done, "choice-tests").source = "my_own = 'something else entirely'"
    got = hand_in(done)
    assert got.extras == ["my_own = 'something else entirely'"]
    assert got.order.index("extra-1") < got.order.index("choice-tests")


def test_an_import_added_to_the_given_imports_survives_but_not_a_broken_helper(done, hand_in):
    imports = find(done, "imports")
    imports.source = imports.source.replace("np.eye(n)", "np.zeros(n)").replace(
        "import numpy as np", "import math\nimport numpy as np\nnp.random.seed(1)"
    )
    got = hand_in(done)
    assert got.extras == ["import math\nnp.random.seed(1)"]
    assert got.order[got.order.index("imports") + 1] == "extra-1"
    assert "The given cell 'imports' was changed" in got.notes and "cell of its own" in got.notes


def test_a_given_cell_with_a_slip_is_recognised_without_its_id(done, hand_in):
    strip(done)
    done.cells[2].source = done.cells[2].source.replace("eye", "eyee")
    done.cells[0].source = done.cells[0].source.replace("known", "knwon")
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.extras == []


# --- answers that moved, were copied, split or merged -------------------------------------------------------


@pytest.mark.parametrize("ids", [False, True])
def test_stripped_metadata(done, hand_in, ids):
    strip(done, ids)
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.extras == []
    assert ("lost their ids" in got.notes) == ids


def test_stripped_metadata_and_extra_cells(done, hand_in):
    after(done, "why", extra("A second paragraph.", "markdown", "p2"))
    after(done, "softmax-tests", extra("helper = 3"))
    find(done, "how").source = "YOUR ANSWER HERE"
    strip(done)
    got = hand_in(done)
    assert got.by_id["why"].source == ESSAY + "\n\nA second paragraph."
    assert not got.by_id["how"].answered and got.extras == ["helper = 3"]


def test_stripped_metadata_keeps_two_unanswered_written_cells_apart(released, hand_in):
    notebook = deepcopy(released)
    find(notebook, "how").source = "Only the second one."
    strip(notebook)
    got = hand_in(notebook)
    assert got.answers() == {"how": "Only the second one."} and got.extras == []
    assert "missing" not in got.notes


def test_names_are_found_through_syntax_errors_and_magics(done, hand_in):
    find(done, "softmax").source = "%matplotlib inline\n!pip list\n" + SOFTMAX
    find(done, "attend").source = "def attend(q, k, v:\n    return q"
    wanted = {k: find(done, k).source for k in ("softmax", "attend")}
    strip(done)
    got = hand_in(done)
    assert {k: got.by_id[k].source for k in wanted} == wanted


def test_a_copied_cell_gives_its_place_to_the_first_changed_copy(released, hand_in):
    notebook = deepcopy(released)
    stub = find(notebook, "softmax")
    first, second = deepcopy(stub), deepcopy(stub)
    first.update(source=SOFTMAX, id="c1")
    second.update(source=SOFTMAX + "  # again", id="c2")
    after(notebook, "softmax", first, second, deepcopy(stub))
    got = hand_in(notebook)
    assert got.by_id["softmax"].source == SOFTMAX
    assert got.extras == [SOFTMAX + "  # again"]
    assert got.order[got.order.index("softmax") + 1] == "extra-1"
    assert "grade_id 'softmax' used 4 times" in got.events and "more than once" in got.notes


def test_a_rewritten_copy_of_another_exercise_answers_what_it_defines(done, hand_in):
    wrong = deepcopy(find(done, "softmax"))
    wrong.update(source=ATTEND, id="copy")
    after(done, "attend-task", wrong)
    drop(done, "attend")
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.extras == []
    assert "a cell with the id 'softmax' answers 'attend'" in got.events


def test_a_misspelt_name_stays_in_its_own_cell(done, hand_in):
    find(done, "attend").source = misspelt = "def atend(q, k, v):\n    return v\n\nanswer_axis = 'd'"
    got = hand_in(done)
    assert got.by_id["attend"].source == misspelt and got.by_id["choice"].source == ANSWERS["choice"]


def test_an_answer_in_a_new_cell_at_the_end_is_moved_to_its_place(released, hand_in):
    notebook = deepcopy(released)
    notebook.cells += [extra(SOFTMAX, cell_id="a"), extra(ATTEND, cell_id="b"), extra("print(1)", cell_id="c")]
    got = hand_in(notebook)
    assert got.answers() == {"softmax": SOFTMAX, "attend": ATTEND}
    assert "The answer to 'softmax', 'attend' stood in another cell" in got.notes
    assert got.extras == ["print(1)"]


def test_an_answer_that_was_answered_in_place_is_not_replaced_by_a_later_experiment(done, hand_in):
    done.cells.append(extra("def softmax(x):\n    return 0"))
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.order[-1] == "extra-1"


def test_merged_solution_cells(done, hand_in):
    find(done, "softmax").source = both = SOFTMAX + "\n\n" + ATTEND
    drop(done, "attend", "softmax-tests")
    got = hand_in(done)
    assert got.by_id["softmax"].source == both
    assert got.by_id["attend"].answered and got.by_id["attend"].source.startswith("# This answer stands in")
    assert "'attend' stood in one cell with another answer" in got.notes


def test_cells_merged_into_the_later_one_stand_before_the_earlier_test(done, hand_in):
    find(done, "attend").source = both = SOFTMAX + "\n\n" + ATTEND
    drop(done, "softmax")
    got = hand_in(done)
    assert got.by_id["softmax"].source == both and got.by_id["attend"].answered


def test_everything_in_one_cell(released, hand_in):
    notebook = v4.new_notebook(cells=[extra("\n\n".join([SOFTMAX, ATTEND, ANSWERS["choice"]]))])
    got = hand_in(notebook)
    assert all(got.by_id[k].answered for k in ("softmax", "attend", "choice"))
    assert "answer_axis" in got.by_id["softmax"].source and got.extras == []


def test_an_answer_merged_with_its_test_or_its_task(done, hand_in):
    tests = find(done, "softmax-tests").source
    find(done, "softmax").source = SOFTMAX + "\n\n" + tests
    find(done, "choice-tests").source = ANSWERS["choice"] + "\n\n" + find(done, "choice-tests").source
    find(done, "why-task").source += "\n\n" + ESSAY
    drop(done, "softmax-tests", "choice", "why")
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.extras == []


def test_a_later_exercise_that_happens_to_use_a_name_does_not_answer_it(done, released, hand_in):
    find(done, "softmax").source = find(released, "softmax").source
    find(done, "attend").source = both = "softmax = np.exp\n" + ATTEND
    got = hand_in(done)
    assert not got.by_id["softmax"].answered and got.by_id["attend"].source == both


@pytest.mark.parametrize("where", ["before", "after", "end"])
def test_a_split_cell_keeps_both_halves(done, hand_in, where):
    helper = extra("def shifted(x):\n    return x - x.max()", cell_id="half")
    find(done, "softmax").source = main = "def softmax(x):\n    return np.exp(shifted(x))"
    after(done, {"before": "softmax-task", "after": "softmax", "end": "how"}[where], helper)
    got = hand_in(done)
    assert got.by_id["softmax"].source == main and got.extras == [helper.source]
    assert got.order.index("extra-1") < got.order.index("softmax-tests")


def test_a_split_cell_whose_first_half_kept_the_id(done, hand_in):
    find(done, "softmax").source = first = "def shifted(x):\n    return x - x.max()"
    half = deepcopy(find(done, "softmax"))
    half.update(source=SOFTMAX, id="half")
    after(done, "softmax", half)
    got = hand_in(done)
    assert got.by_id["softmax"].source == SOFTMAX and got.extras == [first]
    assert got.order.index("extra-1") < got.order.index("softmax")


def test_retyped_answers_get_their_type_back(done, hand_in):
    at = done.cells.index(find(done, "softmax"))
    done.cells[at] = text("softmax", f"```python\n{SOFTMAX}\n```", **SOLUTION)
    at = done.cells.index(find(done, "why"))
    done.cells[at] = code("why", ESSAY, **WRITTEN)
    got = hand_in(done)
    assert got.answers() == ANSWERS
    assert got.by_id["softmax"].cell_type == "code" and got.by_id["why"].cell_type == "markdown"
    strip(done)
    assert hand_in(done).answers() == ANSWERS


def test_moved_cells_return_to_their_order(done, hand_in):
    cells = done.cells
    done.cells = cells[9:12] + cells[:3] + cells[6:9] + cells[3:6] + cells[12:]
    assert hand_in(done).answers() == ANSWERS
    strip(done)
    got = hand_in(done)
    assert got.answers() == ANSWERS and got.extras == []


def test_a_written_answer_in_a_new_cell_below_the_untouched_one(released, hand_in):
    notebook = deepcopy(released)
    after(notebook, "why", extra(ESSAY, "markdown"))
    got = hand_in(notebook)
    assert got.answers() == {"why": ESSAY} and got.extras == []


def test_a_missing_id_cell_is_found_by_its_assignment_or_put_back(done, hand_in):
    find(done, "student-id").id = "other"
    assert hand_in(done).by_id["student-id"].source == ANSWERS["student-id"]
    drop(done, "other")
    got = hand_in(done)
    assert got.by_id["student-id"].source == 'student_id = "..."' and "'student-id' was missing" in got.notes


def test_a_missing_answer_is_the_stub(done, released, hand_in):
    drop(done, "attend")
    got = hand_in(done)
    assert got.by_id["attend"].source == find(released, "attend").source and not got.by_id["attend"].answered
    assert "The answer cell 'attend' was missing" in got.notes


def test_a_different_set_and_an_empty_notebook_are_unreadable(hand_in):
    other = [extra('student_id = "a"', cell_id="student-id"), extra("def convolve(x):\n    return x")]
    for cells in ([], other):
        with pytest.raises(Unreadable, match="different file"):
            hand_in(v4.new_notebook(cells=cells))


def test_a_release_of_another_version_is_refused(source, released, done):
    old = deepcopy(released)
    drop(old, "attend")
    with pytest.raises(ValueError, match="attend"):
        rebuild(places_of(source, old), done)


def test_rebuilding_twice_gives_the_same(done, hand_in):
    after(done, "softmax", extra("x = 1"))
    strip(done)
    assert hand_in(done).rebuilt == hand_in(done).rebuilt


def test_any_mixture_of_honest_accidents_keeps_every_answer_before_its_test(done, released, source):
    rng = random.Random(3)
    for _ in range(150):
        cells = deepcopy(done.cells)
        history = [_accident(cells, released, rng) for _ in range(rng.randrange(1, 5))]
        if rng.random() < 0.3:
            history.append("stripped")
            for n, cell in enumerate(cells):
                cell.update(metadata={}, id=f"r{n}")
        rebuilt = rebuild(places_of(source, released), read_notebook(json.dumps({"cells": cells}).encode(), "x")[0])
        stood = ""
        for cell in rebuilt.cells:
            if cell.kind == "test":
                answer = ANSWERS[cell.cell_id.removesuffix("-tests")]
                assert all(line in stood for line in answer.split("\n")), history
            elif cell.kind in ("solution", "written"):
                assert cell.answered, history
            stood += cell.source + "\n"
        assert ESSAY in stood, history


def _accident(cells, released, rng):
    """Something that happens to honest notebooks: a change of `cells` in place, and what it was."""
    at = rng.choice([n for n, c in enumerate(cells) if c.cell_type == "code" and c.source in ANSWERS.values()] or [0])
    cell = cells[at]
    new = v4.new_code_cell(cell.source, id=f"new-{rng.randrange(10**9)}")
    kind = rng.choice(["deleted", "at the end", "below", "copied", "merged", "retyped", "scratch", "moved"])
    stub = next((c.source for c in released.cells if c.id == cell.id), "")
    match kind:
        case "deleted":
            cells[:] = [c for c in cells if not c.id.endswith(("-tests", "-task")) or rng.random() < 0.5]
        case "at the end" | "below" if stub and cell.id != "student-id":
            cells.insert(len(cells) if kind == "at the end" else at + 1, new)
            cell.source = stub
        case "copied":
            cells.insert(at, deepcopy(cell))
        case "merged" if at + 1 < len(cells) and cells[at + 1].cell_type == "code" and cell.id != "student-id":
            cell.source += "\n\n" + cells.pop(at + 1).source
        case "retyped":
            cells[at] = nbformat.from_dict({**cell, "cell_type": "markdown"})
        case "scratch":
            cells.insert(at, v4.new_code_cell("scratch = 3", id=new.id))
        case "moved" if cell.id != "student-id":
            cells.insert(rng.randrange(len(cells)), cells.pop(at))
    return kind, cell.id


def test_shuffled_and_mutilated_notebooks_never_break_the_rebuild(done, released, source):
    rng = random.Random(5)
    for _ in range(150):
        cells = deepcopy([*done.cells, *released.cells])
        rng.shuffle(cells)
        cells = cells[: rng.randrange(1, len(cells))]
        for cell in cells:
            if rng.random() < 0.3:
                cell.metadata = {}
            if rng.random() < 0.3:
                cell.source = cell.source[: rng.randrange(len(cell.source) + 1)]
            if rng.random() < 0.2:
                cell.source += "\n" + rng.choice(cells).source
        notebook, _ = read_notebook(json.dumps({"cells": cells}).encode(), "x")
        try:
            rebuilt = rebuild(places_of(source, released), notebook)
        except Unreadable:
            continue
        nbformat.validate(from_dict(to_content(rebuilt, source)))
        assert [c.place for c in rebuilt.cells if c.place is not None] == list(range(len(source.cells)))


def test_hostile_sizes_take_no_time_to_speak_of(done, hand_in):
    done.cells += [extra("x = 1\n" * 50_000, cell_id="long"), extra("(" * 100_000, cell_id="deep")]
    done.cells += [extra(f"{SOFTMAX}\ny{n} = {n}", cell_id=f"n{n}") for n in range(300)]
    got = hand_in(done)
    assert got.answers() == ANSWERS and len(got.extras) == 302


def test_what_is_said_about_one_submission_does_not_fill_the_report(done, hand_in, tmp_path):
    done.cells += [
        extra(f"x = {n}", cell_id=f"n{n}") | {"metadata": {"tags": [f"tag-{n}-{m}" for m in range(20)]}}
        for n in range(100)
    ]
    got = hand_in(done)
    assert len(got.rebuilt.events) == 101 and got.rebuilt.events[-1] == "… and 1900 more of the kind."
    make(tmp_path, f"{NAME}.ipynb")
    for n in range(300):
        (tmp_path / f"link-{n}.ipynb").symlink_to("/etc/passwd")
    path, notes = find_notebook(tmp_path, NAME)
    assert path == tmp_path / f"{NAME}.ipynb" and len(notes) == 101


def test_ps2_survives_stripping_shuffling_of_ids_and_deleted_tests():
    source = Course(ROOT).set_files("ps2-self-attention").source
    released = release_view(source)
    solved = deepcopy(source)
    for cell, stub in zip(solved.cells, released.cells, strict=True):
        if not cell.metadata.get("nbgrader", {}).get("solution"):
            cell.source = stub.source
    plain = rebuild(places_of(source, released), read_notebook(nbformat.writes(solved).encode(), "ps2.ipynb")[0])
    assert plain.notes == [] and all(c.answered for c in plain.cells if c.kind in ("solution", "written"))
    strip(solved)
    solved.cells = [c for c in solved.cells if c.source not in {p.released for p in plain.cells if p.kind == "test"}]
    again = rebuild(places_of(source, released), read_notebook(nbformat.writes(solved).encode(), "ps2.ipynb")[0])
    assert [(c.kind, c.source, c.answered) for c in again.cells] == [
        (c.kind, c.source, c.answered) for c in plain.cells
    ]
    with pytest.raises(Unreadable):
        rebuild(places_of(source, released), v4.new_notebook(cells=[extra("print(1)")]))
