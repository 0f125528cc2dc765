"""What people do with files, as Python functions: fit, score, report, view.

Every command of the shell reads its options, calls one of these functions and prints what it
returns. So whatever the shell can do, a script or a notebook can do in one line, with the same
result.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aberra.workflow.evaluating import evaluate
    from aberra.workflow.evaluation_files import Evaluated
    from aberra.workflow.exporting import export
    from aberra.workflow.fitting import fit
    from aberra.workflow.from_images import fit_images
    from aberra.workflow.from_scans import fit_scans
    from aberra.workflow.from_table import fit_table
    from aberra.workflow.inspecting import ModelInfo, info
    from aberra.workflow.outcome import Fitted
    from aberra.workflow.reporting import WrittenReport, report
    from aberra.workflow.reviewing import Reviewed, feedback
    from aberra.workflow.score_files import score
    from aberra.workflow.scored import ScoredImages, ScoredScans, ScoredTable
    from aberra.workflow.serving import Service, open_service
    from aberra.workflow.viewing import Viewer, open_viewer

# The parts load when they are first used, so that `aberra --help` waits for none of them. No
# module may have the name of a function here: importing it would hide the function.
_HOMES = {
    "Evaluated": "evaluation_files",
    "Fitted": "outcome",
    "ModelInfo": "inspecting",
    "Reviewed": "reviewing",
    "ScoredImages": "scored",
    "ScoredScans": "scored",
    "ScoredTable": "scored",
    "Service": "serving",
    "Viewer": "viewing",
    "WrittenReport": "reporting",
    "evaluate": "evaluating",
    "export": "exporting",
    "feedback": "reviewing",
    "fit": "fitting",
    "fit_images": "from_images",
    "fit_scans": "from_scans",
    "fit_table": "from_table",
    "info": "inspecting",
    "open_service": "serving",
    "open_viewer": "viewing",
    "report": "reporting",
    "score": "score_files",
}

__all__ = [
    "Evaluated",
    "Fitted",
    "ModelInfo",
    "Reviewed",
    "ScoredImages",
    "ScoredScans",
    "ScoredTable",
    "Service",
    "Viewer",
    "WrittenReport",
    "evaluate",
    "export",
    "feedback",
    "fit",
    "fit_images",
    "fit_scans",
    "fit_table",
    "info",
    "open_service",
    "open_viewer",
    "report",
    "score",
]


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'aberra.workflow' has no attribute {name!r}")
    return getattr(import_module(f"aberra.workflow.{_HOMES[name]}"), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
