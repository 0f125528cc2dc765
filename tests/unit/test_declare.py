"""Declared estimators: one line per parameter gives constructor, ranges and docstring."""

from __future__ import annotations

import inspect
from numbers import Integral

import pytest
from sklearn.base import BaseEstimator, clone

from aberra.declare import changed, estimator, learnt, learnt_by, parameter, parameters_of
from aberra.scikit import Interval, StrOptions


@estimator
class Parent(BaseEstimator):
    """One sentence.

    Examples
    --------
    None.
    """

    size: int = parameter(
        Interval(Integral, 1, None, closed="left"), default=3, kw_only=False, doc="How large."
    )
    way: str = parameter(StrOptions({"up", "down"}), None, default="up", doc="Where to.")
    found_: float = learnt("What came out.")
    quiet_: int = learnt()


@estimator
class Child(Parent):
    """Another sentence."""

    more: bool = parameter("boolean", default=False, doc="Whether more.")
    way: str = changed(default="down")


def test_constructor_stores_each_parameter_under_its_name():
    assert Child(5, more=True).get_params() == {"size": 5, "way": "down", "more": True}
    assert Parent().get_params() == {"size": 3, "way": "up"}
    assert clone(Child(7)).size == 7
    kinds = {p.name: p.kind for p in inspect.signature(Child).parameters.values()}
    assert kinds["size"] is inspect.Parameter.POSITIONAL_OR_KEYWORD
    assert kinds["way"] is kinds["more"] is inspect.Parameter.KEYWORD_ONLY


def test_learnt_attributes_are_not_there_before_a_fit():
    assert vars(Parent()) == {"size": 3, "way": "up"}
    assert not hasattr(Parent(), "found_")
    assert [f.name for f in learnt_by(Child)] == ["found_", "quiet_"]


def test_ranges_are_inherited_and_checked():
    Child()._validate_params()
    with pytest.raises(ValueError, match="size"):
        Child(0)._validate_params()
    with pytest.raises(ValueError, match="way"):
        Child(way="left")._validate_params()


def test_docstring_states_type_default_and_text_in_numpydoc_order():
    text = Parent.__doc__
    assert "size : int, default=3\n    How large." in text
    assert 'way : {"down", "up"} or None, default="up"\n    Where to.' in text
    assert "found_ : float\n    What came out." in text
    assert "quiet_" not in text
    order = [text.index(title) for title in ("Parameters\n---", "Attributes\n---", "Examples\n---")]
    assert order == sorted(order)
    assert 'default="down"' in Child.__doc__


def test_change_of_what_is_not_there_is_refused():
    with pytest.raises(TypeError, match="nothing"):

        @estimator
        class Wrong(Parent):
            """Wrong."""

            nothing: int = changed(default=3)


def test_constructor_order_is_that_of_the_signature():
    names = [f.name for f in parameters_of(Child)]
    assert names == list(inspect.signature(Child).parameters)
