"""The list of mistakes that must be noticed still fits the code (`make mutants` tries them)."""

from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture
def planted(monkeypatch):
    monkeypatch.chdir(ROOT)
    monkeypatch.syspath_prepend(ROOT)
    return import_module("benchmarks.mutants_planted").PLANTED


def test_every_mistake_can_be_made_in_one_place(planted):
    assert len({one.name for one in planted}) == len(planted)
    for one in planted:
        changed = one.mutant()
        assert changed.source != Path("src/aberra", one.module).read_text()
        compile(changed.source, one.module, "exec")


def test_every_module_has_tests_that_are_there(planted):
    known = import_module("benchmarks.mutants_tests").TESTS
    assert {one.module for one in planted} <= known.keys()
    assert all(Path("src/aberra", module).is_file() for module in known)
    assert all(Path(test).is_file() for tests in known.values() for test in tests)
