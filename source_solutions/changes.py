"""General changes of a reference: an argument or a step of it, each with the sentence for whoever does it so.

They are tried on every exercise by themselves, where no misconception of its catalogue explains the answers. This text
is read in front of each catalogue; its names begin with an underscore, for they stand in the catalogue's namespace.
"""

import ast
import functools
import inspect
from collections.abc import Callable, Iterator
from itertools import pairwise, product
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

    parameters = inspect.signature(methods[name]).parameters.values()
    names = [p.name for p in parameters if p.kind == p.POSITIONAL_OR_KEYWORD and p.name != "self"]
    for says in _ALIKE if len(names) > 1 else []:
        yield f"for other arrays: all that are given, {says}", put(_changing(names, says))
    for one in names:
        for says in dict.fromkeys([*_ARRAYS, *_MASKS, *_NUMBERS, *_FLAGS]):
            yield f"for another `{one}`: the one given, {says}", put(_changing([one], says))
        for other in names:
            if one < other:
                yield f"for `{one}` and `{other}` in each other's place", put(_exchanging(one, other))
            if one != other:
                yield f"with `{other}` in the place of `{one}`", put(_replacing(one, other))


_SIGNS = {ast.Add: "adds", ast.Sub: "subtracts", ast.Mult: "multiplies", ast.Div: "divides"}
_OTHER_SIGNS = {ast.Add: [ast.Sub, ast.Mult], ast.Sub: [ast.Add], ast.Mult: [ast.Div, ast.Add], ast.Div: [ast.Mult]}
_OTHER_COMPARISONS = {
    ast.Lt: [ast.LtE, ast.Gt],
    ast.LtE: [ast.Lt, ast.GtE],
    ast.Gt: [ast.GtE, ast.Lt],
    ast.GtE: [ast.Gt, ast.LtE],
    ast.Eq: [ast.NotEq],
    ast.NotEq: [ast.Eq],
}
_DROPPED = {
    *("exp", "sqrt", "tanh", "log", "abs", "maximum", "softmax", "swapaxes", "round", "ceil", "floor", "square"),
    *("cumsum", "clip", "lower", "strip", "flip"),
}
_OTHER_FUNCTIONS = {
    **{"sum": ["mean", "max"], "mean": ["sum"], "max": ["min", "sum", "mean"], "min": ["max"], "sqrt": ["square"]},
    **{"sin": ["cos"], "cos": ["sin"], "tanh": ["exp"], "exp": ["tanh"], "floor": ["ceil"], "ceil": ["floor"]},
    **{"repeat": ["tile"], "tile": ["repeat"], "argmax": ["argmin"], "argmin": ["argmax"], "std": ["var"]},
    **{"var": ["std"], "maximum": ["minimum"], "minimum": ["maximum"]},
}


@general
def _one_step_changed(value: Any, cell: str) -> Iterator[tuple[str, str]]:
    """The cell with one expression in the place of another."""
    tree = ast.parse(cell)
    if any(isinstance(node, ast.While) for node in ast.walk(tree)):  # it might not come to an end
        return
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    if not functions:  # a cell of numbers
        functions = [tree]
    for others, function in product((_in_place_of, _more_than, _other_number), functions):  # what says most first
        names = _names_of(function)
        for parent, field, index, node, step in _expressions(function, "where it begins"):
            for says, new in others(node, names):
                holder, place = (vars(parent), field) if index is None else (getattr(parent, field), index)
                holder[place] = new
                text = ast.unparse(ast.fix_missing_locations(tree))
                holder[place] = node
                yield f"of a solution that has one change: {step}, it {says}", text


def _names_of(function: ast.FunctionDef | ast.Module) -> list[str]:
    """The arguments of a function; of a cell of numbers the names of numbers in it."""
    if isinstance(function, ast.FunctionDef):
        return [argument.arg for argument in function.args.args if argument.arg != "self"]
    nodes = [*ast.walk(function)]
    others = {n.func.id for n in nodes if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)}
    return sorted({n.id for n in nodes if isinstance(n, ast.Name)} - others - {"np", "torch", "math", "range"})


def _expressions(parent: ast.AST, step: str) -> Iterator[tuple[ast.AST, str, int | None, ast.expr, str]]:
    """Each expression, where it stands, and the step that it belongs to, in words."""
    for field, value in ast.iter_fields(parent):
        if field in ("args", "returns", "decorator_list") and isinstance(parent, ast.FunctionDef):
            continue
        if field in ("targets", "target", "annotation", "ctx", "op"):
            continue
        for index, item in enumerate(value) if isinstance(value, list) else [(None, value)]:
            here = step
            match item:
                case ast.Assign(targets=[target, *_]) | ast.AugAssign(target=target) | ast.AnnAssign(target=target):
                    here = f"where it makes `{ast.unparse(target)}`"
                case ast.Return():
                    here = "in what it returns"
                case ast.FunctionDef() | ast.JoinedStr() | ast.Raise() | ast.Assert():
                    continue
            if isinstance(item, ast.expr):
                yield parent, field, index, item, here
            if isinstance(item, ast.AST):
                yield from _expressions(item, here)


def _in_place_of(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    """What may stand in the place of an expression, and what the solution then does, in words."""
    match node:
        case ast.BinOp(left=left, op=op, right=right):
            for other in _OTHER_SIGNS.get(type(op), []):
                yield f"{_SIGNS[other]} where it should not", ast.BinOp(left, other(), right)
            if isinstance(op, (ast.MatMult, ast.Sub, ast.Div, ast.Pow, ast.FloorDiv)):
                yield "has the two sides of an operation in each other's place", ast.BinOp(right, op, left)
            if isinstance(op, (ast.BitAnd, ast.BitOr)):
                joined = ast.BitOr() if isinstance(op, ast.BitAnd) else ast.BitAnd()
                yield "joins two conditions in another way", ast.BinOp(left, joined, right)
            yield f"leaves out `{_shortened(right)}`", left
            yield f"leaves out `{_shortened(left)}`", right
        case ast.UnaryOp(op=ast.USub(), operand=operand) if not isinstance(operand, ast.Constant):
            yield "has the opposite sign", operand
        case ast.UnaryOp(op=ast.Not() | ast.Invert(), operand=operand):
            yield "has a condition turned round", operand
        case ast.Compare(left=left, ops=[op], comparators=others):
            for other in _OTHER_COMPARISONS.get(type(op), []):
                yield "makes another comparison", ast.Compare(left, [other()], others)
        case ast.IfExp(body=body, orelse=other):
            yield f"always has `{_shortened(body)}`", body
            yield f"always has `{_shortened(other)}`", other
        case ast.Constant(value=bool() as value):
            yield "has a setting turned round", ast.Constant(not value)
        case ast.Tuple(elts=elements, ctx=ast.Load()) | ast.List(elts=elements) if len(elements) > 1:
            yield "has the parts in reverse order", type(node)(elements[::-1], ast.Load())
        case ast.Name(id=name, ctx=ast.Load()) if name in names:
            for other in names:
                if other != name:
                    yield f"uses `{other}` in the place of `{name}`", ast.Name(other, ast.Load())
        case ast.Attribute(attr="T" | "mT", value=value):
            yield f"does not transpose `{_shortened(value)}`", value
        case ast.Call(func=func, args=args, keywords=keywords):
            name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
            first = args[0] if args else getattr(func, "value", None)
            if name in _DROPPED and isinstance(first, ast.expr):
                yield f"leaves out `{name}`", first
            for other in _OTHER_FUNCTIONS.get(name, []):
                if isinstance(func, ast.Attribute):
                    called = ast.Attribute(func.value, other, ast.Load())
                    yield f"takes `{other}` in the place of `{name}`", ast.Call(called, args, keywords)
            for number, keyword in enumerate(keywords):
                rest = keywords[:number] + keywords[number + 1 :]
                if keyword.arg in ("axis", "dim"):
                    for axis in (-1, -2, 0, 1, None):
                        along = [*rest, ast.keyword(keyword.arg, ast.Constant(axis))]
                        over = f"along axis {axis}" if axis is not None else "on all numbers at once"
                        yield f"applies `{name}` {over}", ast.Call(func, args, along)
                yield f"does without `{keyword.arg}` of `{name}`", ast.Call(func, args, rest)
            for number, (one, other) in enumerate(pairwise(args)):
                if not all(isinstance(a, (ast.Constant, ast.UnaryOp)) for a in (one, other)):
                    exchanged = [*args[:number], other, one, *args[number + 2 :]]
                    yield f"has two arguments of `{name}` in each other's place", ast.Call(func, exchanged, keywords)


def _other_number(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            for number in sorted({value + 1, value - 1, 0, 2 * value, value / 2} - {value}):
                yield f"has {number:g} where another number belongs", ast.Constant(number)


_MORE = {
    "turns `{}` round: rows become columns": "np.swapaxes({}, -1, -2)",
    "leaves out the signs of `{}`": "abs({})",
    "gives `{}` the opposite sign": "-({})",
    "sets what is negative in `{}` to 0": "({}) * (({}) > 0)",
    "squares `{}`": "({}) ** 2",
    "takes the tanh of `{}`": "np.tanh({})",
    "divides `{}` by the sums of its rows": "({}) / ({}).sum(-1, keepdims=True)",
    "brings the rows of `{}` to length 1": "({}) / ((({}) ** 2).sum(-1, keepdims=True) ** 0.5)",
}


def _more_than(node: ast.expr, names: list[str]) -> Iterator[tuple[str, ast.expr]]:
    """What may be done with an expression as well, and what the solution then does, in words."""
    if isinstance(node, (ast.Call, ast.BinOp, ast.Name)) and not (isinstance(node, ast.Name) and node.id not in names):
        text, short = ast.unparse(node), _shortened(node)
        for name in names:
            root, width = f"({text}) / {name}.shape[-1] ** 0.5", f"({text}) / {name}.shape[-1]"
            yield f"divides `{short}` by the root of the width of `{name}`", ast.parse(root, mode="eval").body
            yield f"divides `{short}` by the width of `{name}`", ast.parse(width, mode="eval").body
        for says, more in _MORE.items():
            yield says.format(short), ast.parse(more.replace("{}", text), mode="eval").body


def _shortened(node: ast.expr) -> str:
    text = ast.unparse(node)
    return text if len(text) <= 30 else f"{text[:28]}…"
