"""What is said about any training: the method, the ensemble around it, and how it ended."""

from __future__ import annotations

from typing import Any

from aberra.explain.rounds import story_of
from aberra.recipe import Choices
from aberra.words import out_of
from aberra.workflow.budget import Ending
from aberra.workflow.plan import Plan

ALL_COUNT = "none: trained once, and every sample counts fully"
ENOUGH = 0.25  # share of the training steps below which a network has hardly begun


def about_method(plan: Plan) -> str:
    """Name the detector, and say whether anybody asked for it."""
    name = type(plan.detector).__name__
    return f"{name}, {'the default' if plan.by_default else 'as asked'}"


def flagged_in_training(model: Any) -> str:
    """Say how many training rows of a table are flagged."""
    portrait = model.training_portrait()
    return out_of(portrait.n_flagged, portrait.n_rows, "training row")


def about_ensemble(plan: Plan) -> str:
    """Name the ensemble and say what it does."""
    if plan.ensemble is None:
        return ALL_COUNT
    return f"{plan.ensemble.name}: {plan.ensemble.sentence}"


def about_ending(model: Any, ending: Ending) -> Choices:
    """Say how many rounds there were, or what became of the time that was allowed."""
    minutes = ending.minutes
    over = f"the time budget of {minutes:g} min was used" if ending.early else ""
    story = story_of(model, over)
    if story is not None:
        return [("rounds", story.in_short())]
    if minutes is None:
        return []
    if not model.stops_early:
        return [("time budget", "not used: only training in rounds can stop early")]
    if not ending.early:
        return [("time budget", f"{minutes:g} min: enough for all training steps")]
    share = f"training stopped after {100 * ending.share:.0f} % of its steps"
    more = "" if ending.share >= ENOUGH else ": far too few, allow more time before you use it"
    return [("time budget", f"{minutes:g} min were used: {share}{more}")]
