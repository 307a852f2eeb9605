"""The catalogue of variants: how it is read, and how a misconception is recognised in recorded answers."""

import numpy as np
import pytest

from autograder.judging.client import Entry
from autograder.judging.recognition import answers_beside, close, explained, recognise
from autograder.judging.variants import BadCatalogue, Catalogue, Survivor, Variant, value_for

CELL = "factor = 2\n\ndef double(x):\n    return factor * x"
HEAD = "from autograder.catalogue import edited, right, survivor, wrong\n"


def reference():
    namespace = {"np": np, "student_id": "...", "typed": 3.0}
    exec(CELL, namespace)
    return namespace


def catalogue(text):
    return Catalogue(HEAD + text, reference(), lambda name: CELL if name == "double" else "typed = 3.0", "ps-test")


# ------------------------------------------------------------------------------------------------- reading


def test_variants_are_read_with_their_text():
    read = catalogue(
        '@wrong("double", says="Twice, not squared.")\n'
        "def squared(x):\n    return x * x\n\n\n"
        '@right("double")\n'
        "def added(x):\n    return np.add(x, x)\n"
    )
    squared, added = read.variants
    assert (squared.name, squared.exercise, squared.says) == ("squared", "double", "Twice, not squared.")
    assert squared.source == "def squared(x):\n    return x * x\n\n\ndouble = squared", "it binds the exercise's name"
    assert not squared.is_right and added.is_right
    assert added.value(4) == 8
    assert read.wrong_of({"double"}) == [squared] and read.wrong_of({"other"}) == []


def test_edit_changes_the_reference_cell():
    read = catalogue('edited("double", "thrice", "factor = 2", "factor = 3", says="Not three.")\n')
    (thrice,) = read.variants
    assert thrice.whole_cell and not thrice.is_right
    assert thrice.value(5) == 15
    assert thrice.source == CELL.replace("2", "3")
    assert read.variants[0].value is not reference()["double"]


def test_what_catalogues_share_stands_in_front_and_moves_no_line():
    shared = "def doubled(name):\n    edited('double', name, 'factor * x', 'x * x', says='Twice.')"
    read = catalogue(f"exec({shared!r}); # a comment\ndoubled('squared')\n")
    assert [v.name for v in read.variants] == ["squared"]


def test_edit_without_sentence_is_a_right_variant():
    assert catalogue('edited("double", "turned", "factor * x", "x * factor")\n').variants[0].is_right


LAYERS = """class Layer:
    rate = 2

    def __init__(self):
        ### BEGIN SOLUTION
        self.weight = self.rate
        ### END SOLUTION

    def forward(self, x):
        return helper(self.weight) * x


def helper(x):
    ### BEGIN SOLUTION
    return x
    ### END SOLUTION"""


def based(text):
    names = {}
    exec(LAYERS, names)
    return Catalogue(HEAD + text, names, lambda name: LAYERS, "ps-test").variants


def test_a_variant_based_on_a_class_has_other_methods():
    head = '@wrong("Layer", says="No.", based_on="Layer")\nclass turned:\n'
    (turned,) = based(
        head + "    def forward(self, x):\n        return self.more() - x\n\n    def more(self):\n        return 10\n"
    )
    assert (turned.name, turned.exercise, turned.says, turned.whole_cell) == ("turned", "Layer", "No.", True)
    assert turned.value().forward(3) == 7 and turned.value().weight == 2
    assert turned.value.__name__ == "Layer" and "SOLUTION" not in turned.source


def test_a_variant_based_on_a_function_of_the_cell():
    (tripled,) = based('@right("Layer", based_on="helper")\ndef tripled(x):\n    return 3 * x\n')
    assert tripled.is_right and tripled.value().forward(5) == 30
    assert "def helper(x):\n    return 3 * x" in tripled.source


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def f(x):\n    return x", "has no function, or for a class no class, of this name"),
        ("class f:\n    rate = 3", "a class holds methods only, not line 2"),
    ],
)
def test_a_variant_that_does_not_fit_what_it_is_based_on(text, said):
    with pytest.raises(BadCatalogue, match=f"ps-test.*'f'.*{said}"):
        based(f'@wrong("Layer", says="No.", based_on="Layer")\n{text}\n')


def test_an_empty_catalogue_has_no_variants():
    assert Catalogue("", {}, lambda name: "", "ps-test").variants == []


def test_survivors_are_explained():
    read = catalogue('survivor("double", "factor * x", "x", why="Never.")\n')
    assert read.survivors == [Survivor("double", "factor * x", "x", "Never.")]
    assert read.variants == []


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("def (", "is no Python"),
        ("1 / 0", "fails .ZeroDivisionError"),
        ('edited("double", "a", "absent", "b", says="c")', "occurs 0 times"),
        ('edited("double", "a", "factor", "b", says="c")', "occurs 2 times"),
        ('edited("double", "a", "factor * x", "factor *", says="c")', "the variant 'a' fails"),
        ('edited("double", "a", "= 2", "= 3\\n", says="c")', "edits several lines for 'a'"),
        ('@wrong("nothing", says="c")\ndef f(x):\n    return x', "which does not exist"),
        ('survivor("nothing", "a", "b", why="c")', "which does not exist"),
        (
            '@wrong("double", says="c")\ndef f(x):\n    return x\n\n\nedited("double", "f", "= 2", "= 3", says="d")',
            "two variants called",
        ),
    ],
)
def test_a_catalogue_that_cannot_be_used_says_why(text, said):
    with pytest.raises(BadCatalogue, match=f"ps-test.*{said}"):
        catalogue(text)


# -------------------------------------------------------------------------------------------------- values


def test_value_of_a_function_is_the_function():
    (variant,) = catalogue('@right("double")\ndef added(x):\n    return x + x\n').variants
    assert value_for(variant, reference(), "student-01") is variant.value


def test_value_of_data_is_made_for_the_student():
    (variant,) = catalogue('@right("typed")\ndef length(student_id):\n    return float(len(student_id))\n').variants
    assert value_for(variant, reference(), "student-01") == 10.0


def test_edited_data_is_made_for_the_student_and_prints_nothing(capsys):
    cell = "n = len(student_id)\nprint(n)\ntyped = 2.0 * n"
    names = reference()
    read = Catalogue(
        HEAD + 'edited("typed", "thrice", "2.0", "3.0", says="No.")\n', names, lambda name: cell, "ps-test"
    )
    assert value_for(read.variants[0], names, "student-01") == 30.0
    assert names["typed"] == 3.0 and names["student_id"] == "..."
    assert capsys.readouterr().out == ""


# --------------------------------------------------------------------------------------------- recognition


def entries(*values, check="c", error=None):
    return [Entry(check, f"key {n}", value, error) for n, value in enumerate(values)]


def variant(name):
    return Variant(name, "double", None, "", False, f"You did {name}.")


def test_the_variant_that_gives_the_wrong_answers_is_named():
    student, right = entries(2.0, 9.0, 16.0), entries(2.0, 6.0, 8.0)
    runs = [(variant("other"), entries(2.0, 5.0, 7.0)), (variant("squared"), entries(2.0, 9.0, 16.0))]
    assert [v.name for v in recognise(student, right, runs)] == ["squared"]


def test_a_variant_that_contradicts_a_right_answer_is_not_named():
    student, right = entries(2.0, 9.0), entries(2.0, 6.0)
    assert explained(answers_beside(student, right), entries(3.0, 9.0)) == set()
    assert recognise(student, right, [(variant("squared"), entries(3.0, 9.0))]) == []


def test_a_variant_that_misses_most_of_what_is_wrong_is_not_named():
    student, right = entries(2.0, 9.0, 16.0, 25.0), entries(2.0, 6.0, 8.0, 10.0)
    assert explained(answers_beside(student, right), entries(2.0, 9.0, 15.0, 24.0)) == set()
    assert explained(answers_beside(student, right), entries(2.0, 9.0, 16.0, 24.0)) == {
        ("c", "key 1", 0),
        ("c", "key 2", 0),
    }


def test_right_answers_name_nothing():
    answers = entries(2.0, 6.0)
    assert recognise(answers, answers, [(variant("same"), entries(2.0, 6.0)), (variant("x"), entries(2.0, 7.0))]) == []


def test_two_variants_explain_two_mistakes_and_the_larger_comes_first():
    student, right = entries(1.0, 2.0, 3.0), entries(0.0, 0.0, 0.0)
    runs = [
        (variant("one"), entries(1.0, 0.0, 0.0)),
        (variant("two"), entries(0.0, 2.0, 3.0)),
        (variant("part"), entries(0.0, 0.0, 3.0)),
    ]
    assert [v.name for v in recognise(student, right, runs)] == ["two", "one"]


def test_small_mistakes_are_told_apart_where_no_answer_is_far_off():
    right, added = entries(np.array([0.5, 0.25])), entries(np.array([0.499999, 0.249999]))
    rounded = [(variant("rounded"), entries(np.array([0.500001, 0.25]))), (variant("added"), added)]
    assert [v.name for v in recognise(added, right, rounded)] == ["added"]
    assert not recognise(right, right, rounded)
    far = [*entries(9.0, check="d"), *added]  # where one is far off, it alone counts
    assert not recognise(
        far, [*entries(1.0, check="d"), *right], [(v, [*entries(1.0, check="d"), *t]) for v, t in rounded]
    )


def test_errors_are_recognised_by_their_type():
    right = entries(1.0)
    assert recognise(entries(None, error="ValueError"), right, [(variant("v"), entries(None, error="ValueError"))])
    assert not recognise(entries(None, error="ValueError"), right, [(variant("v"), entries(None, error="TypeError"))])
    assert not recognise(entries(1.0), right, [(variant("v"), entries(None, error="ValueError"))])


def observing(form, product, batch=None, error=None):
    """A check that asks for features of any form, observes their products, and asks again with a batch."""
    return [Entry("c", "key 1", form), Entry("c", "observed p", product), Entry("d", "key 2", batch, error)]


def test_the_form_of_an_answer_is_no_evidence_where_what_it_leads_to_is_observed():
    right = observing([1.0, 2.0], 5.0, [1.0, 2.0])
    turned = observing([2.0, 1.0], 5.0, None, "ValueError: two axes")  # right, but it takes no batch
    runs = [(variant("no batches"), turned), (variant("doubled"), observing([2.0, 4.0], 20.0, [2.0, 4.0]))]
    assert recognise(observing([2.0, 1.0], 7.0, [2.0, 1.0]), right, runs) == []
    assert recognise(observing([2.0, 1.0], 5.0, [2.0, 1.0]), right, runs) == []
    assert [v.name for v in recognise(observing([4.0, 2.0], 20.0, [4.0, 2.0]), right, runs)] == ["doubled"]
    assert [v.name for v in recognise(observing([0.0, 9.0], 5.0, None, "ValueError: two axes"), right, runs)] == [
        "no batches"
    ]


def test_of_two_that_are_alike_in_what_is_observed_the_one_alike_in_form_is_named():
    right, student = observing([1.0], 5.0), observing([3.0], 7.0)
    runs = [(variant("another"), observing([4.0], 7.0)), (variant("this"), observing([3.0], 7.0))]
    assert [v.name for v in recognise(student, right, runs)] == ["this"]


def test_a_fact_beside_answers_leaves_them_as_evidence():
    def noting(value):
        return [Entry("c", "noted n", 2.0), Entry("c", "key 1", value)]

    assert recognise(noting(9.0), noting(6.0), [(variant("v"), noting(9.0))])


def test_typed_numbers_may_be_rounded():
    student, right = [Entry("", "value sheet a", 0.333)], [Entry("", "value sheet a", 0.5)]
    assert recognise(student, right, [(variant("v"), [Entry("", "value sheet a", 1 / 3)])])


def test_more_questions_than_the_variant_answered_are_no_evidence():
    assert recognise(entries(1.0, 5.0), entries(0.0, 0.0), [(variant("v"), entries(1.0))])


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (np.ones(3), [1.0, 1.0, 1.0], True),
        (np.ones(3), np.ones((3, 1)), False),
        (np.array([np.nan, 1.0]), np.array([np.nan, 1.0]), True),
        (np.array([1.0]), np.array([np.nan]), False),
        (np.array([np.inf]), np.array([np.inf]), True),
        (np.float32(1 / 3), 1 / 3, True),
        (1000.0, 1000.5, True),
        (1.0, 1.01, False),
        (True, 1, False),
        (True, np.array(True), True),
        ("a", "a", True),
        ("a", 1.0, False),
        (None, None, True),
        (None, 0.0, False),
        ((np.ones(2), np.ones((2, 2))), [np.ones(2), np.ones((2, 2))], True),
        ((np.ones(2), np.ones((2, 2))), (np.ones(2),), False),
        ((np.ones(2), None), np.ones(2), False),
        ({"a": np.ones(2)}, {"a": [1.0, 1.0]}, True),
        ({"a": 1.0}, {"b": 1.0}, False),
        ({"a": 1.0}, 1.0, False),
        ({1, 2}, {2, 1}, True),
        ({1, 2}, [1, 2], False),
        (10**400, 10**400, False),
        (1 + 2j, 1 + 2j, True),
        (np.zeros(0), np.zeros(0), True),
        ([], [], True),
    ],
)
def test_closeness(one, other, same, recwarn):
    assert close(one, other) is same
    assert not recwarn.list


def test_closeness_of_tensors():
    torch = pytest.importorskip("torch")
    assert close(torch.ones(2, requires_grad=True), np.ones(2))
    assert close(torch.ones(2, dtype=torch.bfloat16), np.ones(2))
    assert close((torch.ones(2), torch.ones(3)), (torch.ones(2), torch.ones(3)))
    assert not close(torch.ones(2), torch.zeros(2))
    assert close(torch.tensor([True]), np.array([True]))


def test_tables_are_close_where_labels_and_texts_are_the_same():
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"name": ["ash", None], "size": [1.0, np.nan]})
    assert close(table, table.assign(size=[1 + 1e-9, np.nan])) and close(table["size"], table["size"] + 1e-9)
    others = [table.assign(name=["oak", None]), table.assign(size=[2.0, np.nan]), table.iloc[:1], table["size"], 3]
    others += [table.rename(columns={"size": "age"}), table.set_axis(["a", "b"])]
    assert not any(close(table, other) or close(other, table) for other in others)
    assert not close(table["size"], table["size"].set_axis(["a", "b"]))
