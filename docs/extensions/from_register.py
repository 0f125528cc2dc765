"""The reference: a page for every public name, the commands and the glossary, from the code."""

import inspect
from collections.abc import Iterable
from importlib import import_module
from pathlib import Path
from typing import Any

import click
import typer
from from_repository import write
from sphinx.application import Sphinx

import aberra
from aberra.cli import app as shell
from aberra.contract.scorer import Scorer
from aberra.declare import parameters_of
from aberra.explain.glossary import GLOSSARY
from aberra.methods import methods

# What scikit-learn's machinery asks, and what only our own machinery does.
HIDDEN = {
    "get_metadata_routing",
    "get_params",
    "set_params",
    "set_fit_request",
    "set_predict_request",
    "maps_and_scores",
    "training_portrait",
    "training_rounds",
    "column_kinds",
    "column_names",
    "review_marks",
}
MAPS = {"anomaly_map", "reconstruct", "segment"}

# Public modules beside the names in `aberra` itself, and what is used of each.
MODULES = {
    "aberra.workflow": "What the commands do, as Python functions",
    "aberra.plots": "Pictures",
    "aberra.report": "Reports",
    "aberra.metrics": "Measures of quality",
    "aberra.thresholds": "Thresholds without labels",
    "aberra.methods": "The register of methods",
    "aberra.data.registry": "Public data sets",
    "aberra.data.scenarios": "Planted anomalies",
    "aberra.localise.volumes": "Scans, slice by slice",
    "aberra.errors": "Errors and warnings",
}


def methods_of(cls: type) -> list[str]:
    """Return the names of the methods that a user calls."""
    parameters = {field.name for field in parameters_of(cls)}
    localises = issubclass(cls, Scorer) and cls.localises.fget(cls)
    maps = set() if cls.__name__ in ("ADC", "IADC") or localises else MAPS
    found = [
        name
        for name in dir(cls)
        if not name.startswith("_") and name not in parameters | HIDDEN | maps
    ]
    return [name for name in found if callable(getattr(cls, name))]


def class_page(name: str, cls: type) -> str:
    """Return the page of an estimator: its docstring, then its methods."""
    members = "".join(f"\n   .. automethod:: {method}\n" for method in methods_of(cls))
    head = f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: aberra\n\n"
    return f"{head}.. autoclass:: {name}\n{members}"


def function_page(name: str) -> str:
    """Return the page of a function, or of a class that is no method."""
    found = getattr(aberra, name)
    if inspect.isclass(found):
        return class_page(name, found)
    return f"{name}\n{'=' * len(name)}\n\n.. currentmodule:: aberra\n\n.. autofunction:: {name}\n"


def module_page(name: str, title: str) -> str:
    """Return the page of a module: all that it defines for users."""
    heading = f"``{name}``: {title[0].lower()}{title[1:]}"
    parts = [heading, "=" * len(heading), "", f".. automodule:: {name}", ""]
    module = import_module(name)
    for public in public_names(module):
        found = getattr(module, public)
        kind = "class" if inspect.isclass(found) else "function"
        if kind == "class" and issubclass(found, BaseException):
            kind = "exception"
        members = "\n   :members:" if kind == "class" else ""
        parts.append(f".. auto{kind}:: {name}.{public}{members}\n")
    return "\n".join(parts)


def public_names(module: Any) -> list[str]:
    """Return the functions and classes that a module offers, as they stand in it."""
    if hasattr(module, "__all__"):
        return [n for n in module.__all__ if callable(getattr(module, n))]
    return [
        name
        for name, found in vars(module).items()
        if (inspect.isfunction(found) or inspect.isclass(found))
        and not name.startswith("_")
        and found.__module__ == module.__name__
    ]


def table(rows: Iterable[tuple[str, str]]) -> str:
    """Return a table of names and what they are."""
    lines = [".. list-table::", "   :widths: 25 75", "   :class: names", ""]
    for name, text in rows:
        lines += [f"   * - {name}", f"     - {text}"]
    return "\n".join(lines)


def first_line(found: Any) -> str:
    """Return the first sentence of a docstring, without the tag of an equation."""
    return (inspect.getdoc(found) or "").split("\n\n")[0].replace("\n", " ")


def reference_index() -> str:
    """Return the first page of the reference."""
    groups = {
        "Robust training": [m for m in methods() if m.takes == "anything"],
        "Detectors for tables": [m for m in methods() if m.takes == "table"],
        "Localisers: where in an image": [m for m in methods() if m.localises],
    }
    parts = ["Reference", "=========", "", INTRODUCTION]
    for title, group in groups.items():
        rows = [(f":class:`aberra.{m.name}`", m.sentence) for m in group]
        parts += [title, "-" * len(title), "", table(rows), ""]
    rows = [(f":obj:`aberra.{n}`", first_line(getattr(aberra, n))) for n in aberra.FUNCTIONS]
    parts += ["Functions, and streams", "----------------------", "", table(rows), ""]
    rows = [(f":doc:`{name} <{name}>`", f"{title}.") for name, title in MODULES.items()]
    rows.append((":doc:`The commands <commands>`", "All options of the shell."))
    parts += ["Modules and commands", "--------------------", "", table(rows), ""]
    names = [m.name for m in methods()] + list(aberra.FUNCTIONS) + list(MODULES) + ["commands"]
    listed = "\n".join(f"   {name}" for name in names)
    return "\n".join([*parts, ".. toctree::\n   :hidden:\n", listed, ""])


INTRODUCTION = """\
Everything in the first four tables is imported from ``aberra`` itself. Each page lists all
parameters with their defaults and ends with an example that runs in our tests. What all models have
in common stands on the page :doc:`/guide/contract`.
"""


def commands_page() -> str:
    """Return the help of all commands, as the shell prints it."""
    parts = ["The commands", "============", "", COMMANDS, ""]
    group = typer.main.get_command(shell)
    with click.Context(group, info_name="aberra") as context:
        assert isinstance(group, click.Group) or hasattr(group, "commands")
        for name, command in group.commands.items():
            parts += command_section(name, command, context)
    return "\n".join(parts)


COMMANDS = """\
``aberra COMMAND --help`` prints what stands here. Before the command, ``--json`` prints one JSON
object instead of text, ``--quiet`` prints nothing, and ``--debug`` shows tracebacks. Exit codes: 0
all is well, 1 a bug, 2 a wrong option, 3 the data, 4 something is not installed, 5 the data have
moved (``score --fail-on-drift``), 130 interrupted."""


def command_section(name: str, command: Any, parent: Any) -> list[str]:
    """Return a command's section; a group of commands has one for each."""
    title = f"aberra {name}"
    parts = [title, "-" * len(title), ""]
    with click.Context(command, info_name=name, parent=parent, terminal_width=80) as context:
        if hasattr(command, "commands"):
            texts = [
                typed_help(sub, click.Context(sub, info_name=n, parent=context, terminal_width=80))
                for n, sub in command.commands.items()
            ]
        else:
            texts = [typed_help(command, context)]
    for text in texts:
        parts += [".. code-block:: text", "", *(f"   {line}" for line in text.splitlines()), ""]
    return parts


def typed_help(command: Any, context: Any) -> str:
    """Return the help of one command."""
    return str(command.get_help(context))


def glossary_page() -> str:
    """Return the glossary as a page."""
    lines = ["Glossary", "========", "", ".. glossary::", ""]
    for term, text in sorted(GLOSSARY.items()):
        lines += [f"   {term}", f"      {text}", ""]
    return "\n".join(lines)


def make_pages(app: Sphinx) -> None:
    """Write all of them."""
    folder = Path(app.srcdir)
    for method in methods():
        write(folder / "api" / f"{method.name}.rst", class_page(method.name, method.load()))
    for name in aberra.FUNCTIONS:
        write(folder / "api" / f"{name}.rst", function_page(name))
    for name, title in MODULES.items():
        write(folder / "api" / f"{name}.rst", module_page(name, title))
    write(folder / "api" / "index.rst", reference_index())
    write(folder / "api" / "commands.rst", commands_page())
    write(folder / "api" / "glossary.rst", glossary_page())


def setup(app: Sphinx) -> dict[str, bool]:
    """Tell Sphinx about it."""
    app.connect("builder-inited", make_pages)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
