"""General changes of a reference: an argument or a step of it, each with the words for whoever does it so.

They are tried on every exercise by themselves, where no misconception of its catalogue explains the answers. Students
read these words: none of them comes from a solution, but for names that the released notebook holds. This text is read
in front of each catalogue; its names begin with an underscore, for they stand in the catalogue's namespace.
"""

import ast
import functools
import inspect
import re
from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any

import numpy as np

from autograder.catalogue import general


def _softmax_of_rows(x):
    powers = np.exp(x - _largest_of_rows(x))
    return powers / powers.sum(-1, keepdims=True)


def _largest_of_rows(x):
    return np.expand_dims(np.max(x, axis=-1), -1)


def _standardised(x, axis):
    return (x - x.mean(axis, keepdims=True)) / (x.var(axis, keepdims=True)) ** 0.5


_ALIKE = {  # what can be made of an argument as well as of an answer
    "with rows and columns exchanged": lambda x: x.swapaxes(-1, -2),
    "with the opposite sign": lambda x: -x,
    "without the signs": abs,
    "in reverse order along the last axis": lambda x: np.flip(x, -1).copy(),
    "with the rows in reverse order": lambda x: np.flip(x, -2).copy(),
    "with the rows moved on by one place": lambda x: np.roll(x, 1, -2),
    "with the rows moved back by one place": lambda x: np.roll(x, -1, -2),
    "after a softmax over each row": _softmax_of_rows,
    "with each row divided by its sum": lambda x: x / x.sum(-1, keepdims=True),
    "with each row brought to length 1": lambda x: x / (x * x).sum(-1, keepdims=True) ** 0.5,
    "with each row's mean subtracted": lambda x: x - x.mean(-1, keepdims=True),
    "with each row brought to mean 0 and variance 1": lambda x: _standardised(x, -1),
    "with each column brought to mean 0 and variance 1": lambda x: _standardised(x, -2),
    "divided by the root of the width": lambda x: x / x.shape[-1] ** 0.5,
    "multiplied by the root of the width": lambda x: x * x.shape[-1] ** 0.5,
    "divided by the width": lambda x: x / x.shape[-1],
    "divided by the number of rows": lambda x: x / x.shape[-2],
    "cut off to whole numbers": np.trunc,
    "rounded to one decimal": lambda x: x.round(1),
    "squared": lambda x: x * x,
}
_ARRAYS = {
    **_ALIKE,
    "reshaped where it has to be transposed": lambda x: x.reshape(*x.shape[:-2], x.shape[-1], x.shape[-2]),
    "in single precision": lambda x: x.astype(np.float32),
    "in half precision": lambda x: x.astype(np.float16).astype(np.float32),
    "with all its axes in reverse order (`.T`)": lambda x: x.T if x.ndim > 2 else None,
    "cut off at -50 and 50": lambda x: x.clip(-50, 50),
    "set to 0": lambda x: x * 0,
    "set to 1": lambda x: x * 0 + 1,
    "with every row like the first": lambda x: x[..., :1, :] + 0 * x,
    "with every row like the mean of all": lambda x: x.mean(-2, keepdims=True) + 0 * x,
    "with every sequence like the first": lambda x: x[:1] + 0 * x if x.ndim > 2 else None,
}
_MASKS = {
    "turned round": lambda m: ~m,
    "with rows and columns exchanged": lambda m: m.swapaxes(-1, -2),
    "without its diagonal": lambda m: m & ~np.eye(*m.shape[-2:], dtype=bool),
    "with all of its diagonal allowed": lambda m: m | np.eye(*m.shape[-2:], dtype=bool),
    "without what lies above its diagonal": lambda m: m & np.tri(*m.shape[-2:], dtype=bool),
    "with every row like the first": lambda m: m[..., :1, :] | (m & False),
    "with every sequence like the first": lambda m: m[:1] | (m & False) if m.ndim > 2 else None,
    "ignored": lambda m: m | True,
}
_NUMBERS = {
    "larger by 1": lambda n: n + 1,
    "smaller by 1": lambda n: n - 1,
    "with the opposite sign": lambda n: -n,
    "without the sign": abs,
    "set to 1": lambda n: type(n)(1),
    "set to 0": lambda n: type(n)(0),
    "doubled": lambda n: 2 * n,
    "halved": lambda n: n // 2 if isinstance(n, int) else n / 2,
    "cut off to a whole number": lambda n: type(n)(int(n)),
}
_FLAGS = {"turned round": lambda b: not b}


def _changes_of(value: Any) -> dict[str, Callable[[Any], Any]]:
    if isinstance(value, (bool, np.bool_)):
        return _FLAGS
    if isinstance(value, (int, float, np.integer, np.floating)):
        return _NUMBERS
    dtype = str(getattr(value, "dtype", "")).removeprefix("torch.")
    return _MASKS if dtype == "bool" else _ARRAYS if dtype.startswith(("float", "int")) else {}


def _called_with(function: Callable[..., Any], change: Callable[[dict[str, Any]], None]) -> Callable[..., Any]:
    """The function, where `change` changes the arguments first."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def changed(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        bound.apply_defaults()
        change(bound.arguments)
        return function(*bound.args, **bound.kwargs)

    return changed


def _changing(names: list[str], says: str) -> Callable[[dict[str, Any]], None]:
    was_applied = []

    def change(given: dict[str, Any]) -> None:
        for name in names:
            value = np.asarray(given[name]) if isinstance(given[name], (list, tuple)) else given[name]
            change_it = _changes_of(value).get(says)
            if change_it is not None:
                was_applied.append(name)
                made = change_it(value)
                given[name] = given[name] if made is None else made
            elif value is not None and len(names) == 1 and not was_applied:  # which ends the run
                raise TypeError(f"nothing {says} can be made of a {type(value).__name__}")

    return change


def _exchanging(one: str, other: str) -> Callable[[dict[str, Any]], None]:
    return lambda given: given.update({one: given[other], other: given[one]})


def _replacing(one: str, other: str) -> Callable[[dict[str, Any]], None]:
    return lambda given: given.update({one: given[other]})


def _released(cell: str) -> set[str]:
    """The words of a solution cell that students are given."""
    return set(re.findall(r"\w+", re.sub(r"(?s)### BEGIN SOLUTION.*?### END SOLUTION", "", cell)))


@general
def _arguments_changed(value: Any, cell: str) -> Iterator[tuple[str, Any]]:
    """A function, or a class by its method, that is the reference with other arguments."""
    if not callable(value):
        return
    methods = vars(value) if isinstance(value, type) else {"": value}
    name = next((m for m in ("", "forward", "step", "__call__") if m in methods), None)
    if name is None:
        return

    def put(change: Callable[[dict[str, Any]], None]) -> Any:
        changed = _called_with(methods[name], change)
        return type(value.__name__, (value,), {name: changed}) if name else changed

    parameters, released = inspect.signature(methods[name]).parameters.values(), _released(cell) - {"self"}
    names = [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD and p.name in released]
    for one in names:
        for says in dict.fromkeys([*_ARRAYS, *_MASKS, *_NUMBERS, *_FLAGS]):
            yield f"for another `{one}`: the one given, {says}", put(_changing([one], says))
        for other in names:
            if one < other:
                yield f"for `{one}` and `{other}` in each other's place", put(_exchanging(one, other))
            if one != other:
                yield f"with `{other}` in the place of `{one}`", put(_replacing(one, other))
    for says in _ALIKE if len(names) > 1 else []:
        yield f"for other arrays: all that are given, {says}", put(_changing(names, says))


_OTHER_SIGNS = {  # what stands there, what could, and the words for it
    ast.Add: {ast.Sub: "a difference is taken where a sum belongs", ast.Mult: "a product is taken where a sum belongs"},
    ast.Sub: {ast.Add: "a sum is taken where a difference belongs"},
    ast.Mult: {ast.Div: "a division stands where a product belongs", ast.Add: "a sum is taken where a product belongs"},
    ast.Div: {ast.Mult: "a multiplication stands where a division belongs"},
}
_TURNED = {
    ast.MatMult: "a matrix product is taken in the other order",
    ast.Sub: "a difference is taken the other way round",
    ast.Div: "a quotient is turned upside down",
}
_LEFT_OUT = {  # the words, and whether the first part can be what is left out
    ast.Add: ("a part of a sum is left out", True),
    ast.Sub: ("a subtraction is left out", False),
    ast.Mult: ("a factor is left out", True),
    ast.Div: ("a division is left out", False),
    ast.FloorDiv: ("a division is left out", False),
    ast.Pow: ("a power is left out", False),
    ast.MatMult: ("a matrix product is left out", True),
    ast.BitAnd: ("a condition is left out", True),
    ast.BitOr: ("a condition is left out", True),
}
_COMPARISONS = {
    ast.Lt: (ast.LtE, ast.Gt),
    ast.LtE: (ast.Lt, ast.GtE),
    ast.Gt: (ast.GtE, ast.Lt),
    ast.GtE: (ast.Gt, ast.LtE),
}
_CALLED = {
    "exp": "an exponential",
    "sqrt": "a square root",
    "tanh": "a tanh",
    "log": "a logarithm",
    "softmax": "a softmax",
    "abs": "an absolute value",
    "swapaxes": "an exchange of axes",
    "transpose": "an exchange of axes",
    "round": "a rounding",
    "ceil": "a rounding",
    "floor": "a rounding",
    "square": "a square",
    "flip": "a reversal",
    "cumsum": "a running sum",
    "clip": "a limit",
    "relu": "a ReLU",
    "lower": "a change to small letters",
    "strip": "a cutting off of white space",
    "sum": "a sum",
    "mean": "a mean",
    "max": "a largest value",
    "min": "a smallest value",
    "sin": "a sine",
    "cos": "a cosine",
    "repeat": "a repetition of each entry",
    "tile": "a repetition of the whole",
    "argmax": "a place of the largest",
    "argmin": "a place of the smallest",
    "std": "a standard deviation",
    "var": "a variance",
    "maximum": "a larger of two",
    "minimum": "a smaller of two",
}
_DROPPED = {
    "exp",
    "sqrt",
    "tanh",
    "log",
    "abs",
    "maximum",
    "softmax",
    "swapaxes",
    "transpose",
    "round",
    "ceil",
    "floor",
    "square",
    "cumsum",
    "clip",
    "relu",
    "lower",
    "strip",
    "flip",
}
_OTHER_FUNCTIONS = {
    "sum": ["mean", "max"],
    "mean": ["sum"],
    "max": ["min", "sum", "mean"],
    "min": ["max"],
    "sqrt": ["square"],
    "sin": ["cos"],
    "cos": ["sin"],
    "tanh": ["exp"],
    "exp": ["tanh"],
    "repeat": ["tile"],
    "tile": ["repeat"],
    "argmax": ["argmin"],
    "argmin": ["argmax"],
    "std": ["var"],
    "var": ["std"],
    "maximum": ["minimum"],
    "minimum": ["maximum"],
}


@general
def _one_step_changed(value: Any, cell: str) -> Iterator[tuple[str, str]]:
    """The cell with one expression in the place of another."""
    tree, released = ast.parse(cell), _released(cell)
    if any(isinstance(node, ast.While) for node in ast.walk(tree)):  # it might not come to an end
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    seen = {ast.unparse(tree)}
    for function in functions or [tree]:  # or a cell of numbers
        names = [a.arg for a in function.args.args if a.arg in released - {"self"}] if functions else []
        for parent, field, index, node in _expressions(function):
            for says, new in _in_place_of(node, names):
                holder, place = (vars(parent), field) if index is None else (getattr(parent, field), index)
                holder[place] = new
                text = ast.unparse(ast.fix_missing_locations(tree))
                holder[place] = node
                if text not in seen:
                    seen.add(text)
                    yield f"of a solution in which {says}", text


def _expressions(parent: ast.AST) -> Iterator[tuple[ast.AST, str, int | None, ast.expr]]:
    """Each expression, and where it stands."""
    for field, value in ast.iter_fields(parent):
        if field in ("args", "returns", "decorator_list") and isinstance(parent, ast.FunctionDef):
            continue
        if field in ("targets", "target", "annotation", "ctx", "op"):
            continue
        for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
            if isinstance(item, (ast.FunctionDef, ast.JoinedStr, ast.Raise, ast.Assert)):
                continue
            if isinstance(item, ast.expr):
                yield parent, field, index, item
            if isinstance(item, ast.AST):
                yield from _expressions(item)


def _in_place_of(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in the place of an expression, and what is the matter with the solution then, in words."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            for other, says in _OTHER_SIGNS.get(type(op), {}).items():
                yield says, ast.BinOp(left, other(), right)
            if type(op) in _TURNED:
                yield _TURNED[type(op)], ast.BinOp(right, op, left)
            if isinstance(op, (ast.BitAnd, ast.BitOr)):
                joined = ast.BitOr() if isinstance(op, ast.BitAnd) else ast.BitAnd()
                yield "two conditions are joined in another way", ast.BinOp(left, joined, right)
            says, is_either = _LEFT_OUT.get(type(op), ("", False))
            if says:
                yield says, left
            if is_either:
                yield says, right
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "a minus sign is left out", operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield "a condition is turned round", operand
        case ast.Compare(left=left, ops=[op], comparators=others) if type(op) in _COMPARISONS:
            equal, turned = _COMPARISONS[type(op)]
            yield "a comparison treats equal numbers in the other way", ast.Compare(left, [equal()], others)
            yield "a comparison is turned round", ast.Compare(left, [turned()], others)
        case ast.IfExp(body=body, orelse=other):
            yield "two cases are treated alike", body
            yield "two cases are treated alike", other
        case ast.Constant(value=bool() as value):
            yield "a setting is turned round", ast.Constant(not value)
        case ast.Tuple(elts=elements, ctx=ast.Load()) | ast.List(elts=elements) if len(elements) > 1:
            yield "parts stand in reverse order", type(node)(elements[::-1], ast.Load())
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            for other in names:
                if other != name:
                    yield f"`{other}` is used in one place where `{name}` belongs", ast.Name(other, ast.Load())
        case ast.Attribute(attr="T" | "mT", value=value):
            yield "an exchange of axes is left out", value
        case ast.Call(func=func, args=args, keywords=keywords):
            yield from _other_calls(func, args, keywords)


def _other_calls(func: ast.expr, args: list[ast.expr], keywords: list[ast.keyword]) -> Iterator[tuple[str, ast.expr]]:
    name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
    first = args[0] if args else getattr(func, "value", None)
    if isinstance(func, ast.Attribute) and not _is_module(func.value):  # a method
        first = func.value
    if name in _DROPPED and isinstance(first, ast.expr):
        yield f"{_CALLED[name]} is left out", first
    for other in _OTHER_FUNCTIONS.get(name, []):
        if isinstance(func, ast.Attribute):
            says = f"{_CALLED[other]} is taken where {_CALLED[name]} belongs"
            yield says, ast.Call(ast.Attribute(func.value, other, ast.Load()), args, keywords)
    what = _CALLED.get(name, "something")
    for number, keyword in enumerate(keywords):
        rest = keywords[:number] + keywords[number + 1 :]
        if keyword.arg in ("axis", "dim"):
            for axis in (-1, -2, 0, 1, None):
                over = "along another axis" if axis is not None else "of all numbers at once"
                along = [*rest, ast.keyword(keyword.arg, ast.Constant(axis))]
                yield f"{what} is taken {over}", ast.Call(func, args, along)
        else:
            yield "a setting is left out", ast.Call(func, args, rest)
    for number, (one, other) in enumerate(pairwise(args)):
        if not all(isinstance(a, (ast.Constant, ast.UnaryOp)) for a in (one, other)):
            exchanged = [*args[:number], other, one, *args[number + 2 :]]
            yield "two inputs of a step stand in each other's place", ast.Call(func, exchanged, keywords)


def _is_module(node: ast.expr) -> bool:
    return isinstance(node, ast.Name) and node.id in ("np", "torch", "math", "F", "nn")
