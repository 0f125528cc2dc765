"""The answers of the server: pages, lists, volumes, marks."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator, Mapping, MutableMapping
from functools import lru_cache
from typing import Annotated, Any, BinaryIO, Literal

from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response, StreamingResponse
from pydantic import BaseModel, ConfigDict

from aberra.errors import AberraError
from aberra.viewer.catalogue import Catalogue, ListedPage, listed_findings
from aberra.viewer.guard import REPORT_POLICY
from aberra.viewer.held import Held
from aberra.viewer.marks import Marks, ReviewMark
from aberra.viewer.pages import STATIC, framed_page
from aberra.viewer.rows import Range, ScoredRows
from aberra.viewer.series import as_nifti, is_for_the_page
from aberra.viewer.tables import Query as Rows
from aberra.viewer.tables import ScoreTable

BUNDLE = STATIC / "niivue.js"
TYPES = {
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
SENT_AT_ONCE = 1 << 20
MARKED_ROWS = "aberra-marked-rows.csv"
NOTHING = "There is nothing at this address."
Message = MutableMapping[str, Any]  # of the server and the app to each other, as ASGI has it


class MarkChange(BaseModel):
    """The body of the only request that changes anything."""

    model_config = ConfigDict(extra="forbid", strict=True)
    mark: ReviewMark | None


class AsciiAnswer(JSONResponse):
    """JSON in ASCII: names of files that are not UTF-8 have no other form."""

    def render(self, content: Any) -> bytes:
        """Return the bytes."""
        return json.dumps(content, allow_nan=False, separators=(",", ":")).encode("ascii")


class Shelf:
    """The catalogue with what was read of it so far."""

    def __init__(self, found: Catalogue, behind: ScoredRows | None = None) -> None:
        self.found = found
        self.behind = behind
        self.marks = Marks(found.root)
        self.table = lru_cache(maxsize=2)(self._table)
        self.model = lru_cache(maxsize=8)(self._model)

    def item(self, number: int, *kinds: str) -> ListedPage:
        """Return an item, or answer that there is none."""
        if not 0 <= number < len(self.found.items):
            raise HTTPException(404, NOTHING)
        item = self.found.items[number]
        if kinds and item.kind not in kinds:
            raise HTTPException(404, NOTHING)
        return item

    def held(self, number: int | None) -> Held:
        """Return a listed file, or answer that there is none."""
        if number is None or not 0 <= number < len(self.found.files):
            raise HTTPException(404, NOTHING)
        return self.found.files[number]

    def name(self, number: int, index: int) -> str:
        """Return the name of a scan or of a row, under which its mark is kept."""
        try:
            if self.item(number, "scans", "table").kind == "table":
                return self.table(number).name(index)
            if index < 0:  # Python would count from the end
                raise IndexError(index)
            return self.found.scans[index].name
        except IndexError:
            raise HTTPException(404, NOTHING) from None

    def load(self) -> None:
        """Read the first page's data, so that a bad file is reported before a page opens."""
        first = self.found.items[0]
        if first.kind == "table":
            self.table(0)
        elif first.kind == "model":
            self.model(0)

    def _table(self, number: int) -> ScoreTable:
        return ScoreTable(self.held(self.item(number, "table").file), self.behind)

    def _model(self, number: int) -> dict[str, Any]:
        from aberra.viewer.models import model_page  # heavy, and nothing else here needs it

        return model_page(self.held(self.item(number, "model").file).real())


def make_app(shelf: Shelf, base: str = "") -> FastAPI:
    """Return the application that shows a shelf.

    Parameters
    ----------
    shelf : Shelf
    base : str, default=""
        The part of the address below which a browser finds the pages; the `Guard` takes it off.

    Returns
    -------
    app : FastAPI
        To be put behind a `Guard`.
    """
    app = FastAPI(
        docs_url=None, redoc_url=None, openapi_url=None, default_response_class=AsciiAnswer
    )
    app.add_exception_handler(AberraError, _explain)
    app.add_exception_handler(HTTPException, _explain_status)
    app.add_exception_handler(RequestValidationError, _explain_request)
    _add_pages(app, shelf, base)
    _add_lists(app, shelf)
    _add_rows(app, shelf)
    _add_marks(app, shelf)
    return app


def _add_pages(app: FastAPI, shelf: Shelf, base: str) -> None:
    files = {p.name: p for p in STATIC.iterdir() if p.suffix in TYPES and p.is_file()}

    @app.get("/")
    def first() -> Response:
        return page(0)

    @app.get("/view/{number}")
    def page(number: int) -> Response:
        item = shelf.item(number)
        if item.kind == "report":
            headers = {"content-security-policy": REPORT_POLICY}
            return FileAnswer(*shelf.held(item.file).open(), "text/html; charset=utf-8", headers)
        return Response(framed_page(item.kind, base), media_type="text/html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in files:
            raise HTTPException(404, NOTHING)
        path = files[name]
        return Response(path.read_bytes(), media_type=TYPES[path.suffix])

    @app.get("/files/{number}")
    def volume(number: int) -> Response:
        held = shelf.held(number)
        if not is_for_the_page(held.path):
            return Response(as_nifti(held), media_type="application/octet-stream")
        return FileAnswer(*held.open(), "application/octet-stream", {})


def _add_lists(app: FastAPI, shelf: Shelf) -> None:
    @app.get("/api/items")
    def items() -> dict[str, Any]:
        return {
            "folder": shelf.found.root.name,
            "items": [{"kind": i.kind, "title": i.title} for i in shelf.found.items],
        }

    @app.get("/api/{number}/scans")
    def scans(number: int) -> dict[str, Any]:
        shelf.item(number, "scans")
        return {
            "scans": [vars(scan) for scan in shelf.found.scans],
            "remarks": shelf.found.remarks,
            "bundle": BUNDLE.is_file(),
        }

    @app.get("/api/{number}/findings/{index}")
    def findings(number: int, index: int) -> dict[str, Any]:
        shelf.item(number, "scans")
        shelf.name(number, index)  # answers if there is no such scan
        return {"findings": listed_findings(shelf.held(shelf.found.scans[index].findings))}


def _add_rows(app: FastAPI, shelf: Shelf) -> None:
    @app.get("/api/{number}/rows")
    def rows(
        number: int,
        *,
        sort: Annotated[str, Query(max_length=40)] = "score",
        descending: bool = True,
        find: Annotated[str, Query(max_length=200)] = "",
        flagged: bool = False,
        marked: Literal["", "accept", "reject"] = "",
        reason: Annotated[str, Query(max_length=400)] = "",
        column: Annotated[str, Query(max_length=400)] = "",
        low: float | None = None,
        high: float | None = None,
        text: Annotated[str, Query(max_length=200)] = "",
        offset: Annotated[int, Query(ge=0)] = 0,
        limit: Annotated[int, Query(ge=1, le=500)] = 100,
    ) -> dict[str, Any]:
        item = shelf.item(number, "table")
        where = Range(column, low, high, text) if column else None
        query = Rows(sort, descending, find, flagged, marked, reason, where, offset, limit)
        marks = {} if shelf.marks.trouble() else shelf.marks.of(item.title)
        return shelf.table(number).page(query, dict(marks))

    @app.get("/api/{number}/overview")
    def overview(number: int) -> dict[str, Any]:
        return shelf.table(number).overview()

    @app.get("/api/{number}/rows/{row}")
    def row(number: int, row: int) -> dict[str, Any]:
        try:
            return shelf.table(number).about(row)
        except IndexError:
            raise HTTPException(404, NOTHING) from None

    @app.get("/api/{number}/model")
    def model(number: int) -> dict[str, Any]:
        return shelf.model(number)


def _add_marks(app: FastAPI, shelf: Shelf) -> None:
    def group(number: int) -> str:
        item = shelf.item(number, "scans", "table")
        return "scans" if item.kind == "scans" else item.title

    def answer(held: Mapping[str, str], trouble: str = "") -> Response:
        # a name that is not UTF-8 may be a value of FastAPI's own answers, but no key
        return AsciiAnswer({"marks": held, "trouble": trouble})

    @app.get("/api/{number}/marks")
    def marks(number: int) -> Response:
        page, trouble = group(number), shelf.marks.trouble()
        return answer({} if trouble else shelf.marks.of(page), trouble)

    @app.get("/api/{number}/marked")
    def marked(number: int) -> Response:
        item = shelf.item(number, "table")
        rows = shelf.table(number).marked(dict(shelf.marks.of(item.title)))
        name = f'attachment; filename="{MARKED_ROWS}"'
        headers = {"content-disposition": name}
        return Response(rows.to_csv(index=False).encode(), media_type="text/csv", headers=headers)

    @app.put("/api/{number}/marks/{index}")
    def mark(number: int, index: int, change: MarkChange) -> Response:
        name = shelf.name(number, index)
        return answer(shelf.marks.set(group(number), name, change.mark))


class FileAnswer(StreamingResponse):
    """The bytes of an open file, which is closed whatever becomes of the answer.

    A browser that goes on to the next scan takes its request back, often before a byte was sent.

    Parameters
    ----------
    file : binary file
    size : int
        Bytes that are promised and sent, even if the file grows meanwhile.
    kind : str
    headers : mapping
    """

    def __init__(self, file: BinaryIO, size: int, kind: str, headers: Mapping[str, str]) -> None:
        self.file = file
        length = {"content-length": str(size)}
        super().__init__(_pieces(file, size), media_type=kind, headers={**headers, **length})

    async def __call__(
        self,
        scope: Message,
        receive: Callable[[], Awaitable[Message]],
        send: Callable[[Message], Awaitable[None]],
    ) -> None:
        """Send the file."""
        with self.file:
            await super().__call__(scope, receive, send)


def _pieces(file: BinaryIO, size: int) -> Iterator[bytes]:
    while size > 0 and (piece := file.read(min(SENT_AT_ONCE, size))):
        size -= len(piece)
        yield piece


def _explain(_: Request, error: Exception) -> Response:
    return AsciiAnswer({"error": str(error)}, 422)


def _explain_status(_: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    return AsciiAnswer({"error": error.detail}, error.status_code)


def _explain_request(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    return AsciiAnswer({"error": f"{where}: {first['msg']}."}, 422)
