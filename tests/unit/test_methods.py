"""The register of methods."""

import pytest

from aberra import methods
from aberra.methods import Method


def test_every_entry_leads_to_its_class():
    for method in methods.methods():
        cls = method.load()
        assert cls.__name__ == method.name
        assert cls.__module__ == method.module
        assert methods.find(cls()) is method
        assert method.sentence.endswith(".")


def test_names_are_unique():
    every = list(methods.methods())
    assert len({m.name for m in every}) == len(every)
    shells = [m.shell for m in every if m.shell]
    assert len(set(shells)) == len(shells)


def test_method_is_found_by_class_name_and_by_shell_name():
    assert methods.named("deep-svdd") is methods.named("DeepSVDD")
    for unknown in ("nonsense", ""):
        with pytest.raises(KeyError):
            methods.named(unknown)
    assert methods.find(object()) is None


def test_a_taken_name_is_refused(monkeypatch):
    monkeypatch.setattr(methods, "_METHODS", list(methods.methods()))
    before = len(list(methods.methods()))
    methods.register(methods.named("ddpm"))
    assert len(list(methods.methods())) == before
    with pytest.raises(ValueError, match="already"):
        methods.register(Method("Other", "elsewhere", "It does.", shell="ddpm"))
    methods.register(Method("Other", "elsewhere", "It does.", shell="other"))
    assert methods.named("other").name == "Other"
