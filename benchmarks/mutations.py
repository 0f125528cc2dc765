"""Every small change that can be made to a module; `mutants.py` tries some of them."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass
from functools import partial
from pathlib import Path

PACKAGE = Path("src/aberra")

COMPARED = {ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq,
            ast.NotEq: ast.Eq, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn,
            ast.NotIn: ast.In}  # fmt: skip
COMPUTED = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult,
            ast.FloorDiv: ast.Mult, ast.Pow: ast.Mult, ast.BitAnd: ast.BitOr,
            ast.BitOr: ast.BitAnd, ast.MatMult: ast.Add}  # fmt: skip
EXCHANGED = {
    "max": "min", "min": "max", "maximum": "minimum", "minimum": "maximum", "argmax": "argmin",
    "argmin": "argmax", "any": "all", "all": "any", "mean": "sum",
}  # fmt: skip


@dataclass(frozen=True)
class Mutant:
    """One change to one module."""

    module: str
    line: int
    column: int
    what: str
    code: str  # the line as it is written
    source: str  # the changed module


Change = Callable[[ast.AST], None]


def changes(node: ast.AST) -> Iterator[tuple[str, Change]]:
    """Yield what can be changed about a node: words for it, and the change."""
    match node:
        case ast.Compare(ops=[op]) if type(op) in COMPARED:
            yield _other(op, "ops", [COMPARED[type(op)]()])
        case ast.BinOp(op=sign) if type(sign) in COMPUTED:
            yield _other(sign, "op", COMPUTED[type(sign)]())
        case ast.BoolOp(op=both):
            yield _other(both, "op", ast.Or() if isinstance(both, ast.And) else ast.And())
        case ast.Constant(value=bool() | int() | float() as value):
            new = not value if isinstance(value, bool) else value + max(1, abs(value))
            yield f"{value} -> {new}", _setting("value", new)
        case ast.UnaryOp(op=ast.USub()):
            yield "sign left out", _setting("op", ast.UAdd())
        case ast.UnaryOp(op=ast.Not()):
            yield "not left out", _without_not
        case ast.Attribute(attr=name) | ast.Name(id=name, ctx=ast.Load()) if name in EXCHANGED:
            field = "id" if isinstance(node, ast.Name) else "attr"
            yield f"{name} -> {EXCHANGED[name]}", _setting(field, EXCHANGED[name])


def _other(before: ast.AST, field: str, after: ast.AST | list[ast.cmpop]) -> tuple[str, Change]:
    new = after[0] if isinstance(after, list) else after
    return f"{type(before).__name__} -> {type(new).__name__}", _setting(field, after)


def _setting(field: str, value: object) -> Change:
    return lambda node: setattr(node, field, value)


def _without_not(node: ast.AST) -> None:
    assert isinstance(node, ast.UnaryOp)
    node.operand = ast.UnaryOp(op=ast.Not(), operand=node.operand)  # not not: a truth value


def left_out(body: list[ast.stmt]) -> Iterator[int]:
    """Yield the places of statements that can be left out and leave a program."""
    for k, statement in enumerate(body):
        called = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Call)
        if len(body) > 1 and (called or isinstance(statement, ast.AugAssign)):
            yield k


def mutants(module: str, like: str = "") -> list[Callable[[], Mutant]]:
    """Return all mutants of a module, each as a function that makes it.

    `like` is a pattern: only lines of code in which it is found are changed.
    """
    text = (PACKAGE / module).read_text()
    wanted = [re.search(like, line.strip()) is not None for line in text.splitlines()]
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    skipped = {id(x) for n in nodes for x in _not_run(n)}
    found: list[Callable[[], Mutant]] = []
    for k, node in enumerate(nodes):
        if id(node) in skipped:
            continue
        for what, change in changes(node) if wanted[_line_of(node)] else ():
            found.append(partial(_changed, module, text, tree, k, what, change))
        if isinstance(node, ast.FunctionDef | ast.For | ast.If | ast.With):
            for place in left_out(node.body):
                line = node.body[place].lineno
                if not wanted[line - 1]:
                    continue
                words = f"left out: {ast.unparse(node.body[place])}"
                change = _without(place)
                found.append(partial(_changed, module, text, tree, k, words, change, line))
    return found


def _line_of(node: ast.AST) -> int:
    return int(getattr(node, "lineno", 1)) - 1


def _without(place: int) -> Change:
    def change(node: ast.AST) -> None:
        assert isinstance(node, ast.FunctionDef | ast.For | ast.If | ast.With)
        del node.body[place]

    return change


def _not_run(node: ast.AST) -> Iterator[ast.AST]:
    """Yield what says nothing about behaviour: annotations, words, and errors that are raised."""
    match node:
        case ast.AnnAssign(annotation=part) | ast.arg(annotation=ast.expr() as part):
            yield from ast.walk(part)
        case ast.FunctionDef(returns=ast.expr() as part):
            yield from ast.walk(part)
        case ast.Raise() | ast.Assert() | ast.JoinedStr() | ast.If(test=ast.Name("TYPE_CHECKING")):
            yield from ast.walk(node)
        case ast.Call(func=called):
            yield from _words(node, ast.unparse(called))


def _words(node: ast.Call, name: str) -> Iterator[ast.AST]:
    if name == "warnings.warn" or name.startswith("logger."):
        yield from ast.walk(node)
    if name in ("parameter", "changed"):  # its default is behaviour, its range is not
        for part in (*node.args, *(k for k in node.keywords if k.arg != "default")):
            yield from ast.walk(part)


def _changed(
    module: str, text: str, tree: ast.Module, k: int, what: str, change: Change, line: int = 0
) -> Mutant:
    copy = deepcopy(tree)
    node = list(ast.walk(copy))[k]
    change(node)
    line, column = line or int(getattr(node, "lineno", 0)), int(getattr(node, "col_offset", 0))
    code = text.splitlines()[line - 1].strip()
    return Mutant(module, line, column, what, code, ast.unparse(ast.fix_missing_locations(copy)))
