"""What Aberra's words mean: written once, for the report, the viewer and the documents."""

from __future__ import annotations

from aberra.robust.weighting import LOST_TRUST

GLOSSARY = {
    "score": "How odd the model finds a sample: the higher, the odder. Scores of one model can be "
    "compared with each other; scores of different models cannot.",
    "threshold": "A sample is flagged if its score lies above the threshold. It is placed without "
    "labels, so take it as a place to start looking, not as a verdict.",
    "reason": "A column that the score comes from. Its share says how far the score would fall if "
    "the row had an ordinary value there, compared with the other columns. “Usually” is the "
    "range of the middle half of the training data.",
    "trust": "How much a training sample counts in training, from 0 to 1. By our own rule nearly "
    "all samples have a trust close to 1, and only those that lie apart lose it. By the papers' "
    "rule the sample in the middle of the ranking always has 0.5, so that a trust below 0.5 is "
    f"nothing unusual. Trust is called low below {LOST_TRUST:g}. "
    "Low trust is a precaution, not a verdict: the threshold alone decides what is flagged.",
    "round": "One training of all members from scratch. After each round every training sample is "
    "scored, and the scores decide how far it is trusted in the next round.",
    "crossing": "A training sample that has gone over to the odder side since the round before: "
    "by our own rule it has lost half of its trust, by the papers' it has entered the odder part "
    "of the ranking (the upper half, unless set otherwise). When crossings no longer become fewer, "
    "the ranking has settled and training stops.",
    "member": "One of several copies of the detector that are trained side by side, each on its "
    "own random choice of the training samples. The score is the mean of their scores.",
    "map": "How odd each pixel of an image, or each voxel of a scan, is. The model restores the "
    "image as it would look if nothing were wrong; the map shows where the two differ.",
}


def explained(*terms: str) -> list[tuple[str, str]]:
    """Return terms with their meaning, in the glossary's order.

    Parameters
    ----------
    *terms : str
        Keys of `GLOSSARY`; all of them by default.

    Returns
    -------
    pairs : list of (str, str)

    Examples
    --------
    >>> [term for term, _ in explained("trust", "score")]
    ['Score', 'Trust']
    """
    chosen = terms or tuple(GLOSSARY)
    return [(term.capitalize(), text) for term, text in GLOSSARY.items() if term in chosen]
