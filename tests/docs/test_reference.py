"""Every public name has a page with a runnable example, and states its defaults."""

import inspect

import pytest

import aberra
from aberra.declare import parameters_of
from aberra.methods import methods

CLASSES = [method.name for method in methods()]


@pytest.mark.parametrize("name", aberra.__all__)
def test_a_public_name_has_an_example(name):
    text = inspect.getdoc(getattr(aberra, name))
    assert "Examples\n--------\n>>> " in text


@pytest.mark.parametrize("name", CLASSES)
def test_every_parameter_is_explained_with_its_default(name):
    cls = getattr(aberra, name)
    text = inspect.getdoc(cls)
    for field in parameters_of(cls):
        (line,) = [one for one in text.splitlines() if one.startswith(f"{field.name} : ")]
        default = field.default
        assert line.endswith(f'default="{default}"' if isinstance(default, str) else f"{default}")


@pytest.mark.parametrize("name", aberra.FUNCTIONS)
def test_every_default_of_a_function_is_stated(name):
    text = inspect.getdoc(getattr(aberra, name))
    for parameter in inspect.signature(getattr(aberra, name)).parameters.values():
        if parameter.kind is not parameter.VAR_KEYWORD:
            assert f"{parameter.name} : " in text
        if parameter.default not in (parameter.empty, None):
            assert f"default={parameter.default}" in text
