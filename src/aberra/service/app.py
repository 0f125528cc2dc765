"""The addresses of the service."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, PlainTextResponse
from pydantic import BaseModel, Field

import aberra
from aberra.errors import AberraError
from aberra.service.answers import Answers
from aberra.service.figures import Figures
from aberra.service.limits import RefusedError

KNOWN = ("/score", "/explain", "/health", "/metrics")
BUG = "Something went wrong inside the service, and it is not your request's fault."


class Rows(BaseModel):
    """Rows to score: objects with the names of the columns, or lists of values in their order."""

    rows: list[dict[str, Any]] | list[list[Any]] = Field(
        examples=[[{"height": 1.7, "clinic": "north"}]]
    )


def make_app(answers: Answers) -> FastAPI:
    """Return the application."""
    app = FastAPI(title="Aberra", version=aberra.__version__, redoc_url=None)
    figures = Figures()
    app.middleware("http")(_counting(figures))
    _tell_errors(app)

    @app.post("/score")
    def score(asked: Rows) -> dict[str, Any]:
        """Score rows: one score, flag and percentile for each; high is odd."""
        found = answers.score(asked.rows)  # type: ignore[arg-type]
        figures.scored(len(found["flags"]), sum(found["flags"]))
        return found

    @app.post("/explain")
    def explain(asked: Rows) -> dict[str, Any]:
        """Score rows, and name the columns that each score comes from."""
        found = answers.explain(asked.rows)  # type: ignore[arg-type]
        figures.scored(len(found["flags"]), sum(found["flags"]))
        return found

    @app.get("/health")
    def health() -> dict[str, str]:
        """Say that the service is there, and with which model."""
        return {"status": "ok", "model": answers.subject.name, "version": aberra.__version__}

    @app.get("/metrics", response_class=PlainTextResponse)
    def metrics() -> str:
        """Return counts of requests and rows, in Prometheus' format."""
        return figures.text()

    return app


def _counting(figures: Figures) -> Callable[..., Awaitable[Response]]:
    async def count(request: Request, call: Callable[[Request], Awaitable[Response]]) -> Response:
        started, path = time.perf_counter(), request.url.path
        shown = path if path in KNOWN else "other"  # a stranger must not fill the memory
        response = await call(request)
        figures.answered(shown, response.status_code, time.perf_counter() - started)
        return response

    return count


def _tell_errors(app: FastAPI) -> None:
    """Answer whatever goes wrong with a sentence."""

    @app.exception_handler(RefusedError)
    def refused(_: Request, error: RefusedError) -> JSONResponse:
        return _said(error.status, error.why)

    @app.exception_handler(AberraError)
    def ours(_: Request, error: AberraError) -> JSONResponse:
        return _said(422, str(error))

    @app.exception_handler(RequestValidationError)
    def malformed(_: Request, error: RequestValidationError) -> JSONResponse:
        first = error.errors()[0]
        place = ".".join(str(part) for part in first["loc"])
        return _said(422, f'Send {{"rows": [...]}} as JSON. At {place}: {first["msg"]}.')

    @app.exception_handler(400)
    def unreadable(_: Request, error: Exception) -> JSONResponse:
        return _said(400, 'The request is no JSON in UTF-8. Send {"rows": [...]}.')

    @app.exception_handler(404)
    def unknown(_: Request, error: Exception) -> JSONResponse:
        return _said(404, f"There is nothing here. There are {', '.join(KNOWN)} and /docs.")

    @app.exception_handler(405)
    def otherwise(_: Request, error: Exception) -> JSONResponse:
        return _said(405, "Use POST for /score and /explain, GET for everything else.")

    @app.exception_handler(Exception)
    def bug(_: Request, error: Exception) -> JSONResponse:
        return _said(500, BUG)


def _said(status: int, why: str) -> JSONResponse:
    return JSONResponse({"error": why}, status_code=status)
