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
    named = {test.partition("::")[::2] for tests in known.values() for test in tests}
    assert all(Path(file).is_file() for file, _ in named)
    cases = import_module("fingerprints").CASES
    fast = {f"test_same_numbers[{name}]" for name, case in cases.items() if not case.slow}
    assert {one for _, one in named} <= fast | {""}
