"""A server of a run's vectors, to copy and change: python recipes/serve.py RUN [--port 8000]; see docs/serving.md."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, Field

from infomax import DGI, InputError
from infomax.errors import shorten, visible
from infomax.index import open_index

MOST_BYTES, MOST_NODES, MOST_NEIGHBOURS = 1 << 20, 100, 100


class NewNode(BaseModel):
    """A new node: features in order or by name; ids of neighbours, or weights by id; of several types, by type."""

    features: list[float] | dict[str, Any] | None = None
    neighbours: list[str | int] | dict[str, float | list[str | int] | dict[str, float]] = []


def limited(app: Any) -> Any:
    """Refuse long bodies and those of unknown length, before they are read."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        size = "0" if scope.get("method", "GET") == "GET" else Request(scope).headers.get("content-length", "")
        told = JSONResponse({"detail": f"body: expected a length of at most {MOST_BYTES:,} bytes."}, 413)
        await (app if size.isdecimal() and len(size) < 10 and int(size) <= MOST_BYTES else told)(scope, receive, send)

    return answer


def make_app(run: str | Path) -> FastAPI:
    """The server of a run folder: everything is loaded here, once; requests only look up."""
    model = DGI.load(run, device="cpu")
    index = open_index(Path(run), model.graph_.ids, lambda: model.transform(model.graph_), model.graph_.node_names)
    model.vectors([dict.fromkeys(model.feature_names_, 0)], [{}])  # so that no request waits for it
    app, described = FastAPI(), {"status": "ok", "nodes": len(index), "model": model.hash_}
    app.get("/health")(lambda: described)

    def known(node_id: str) -> str:
        if node_id not in index:
            raise HTTPException(404, visible(f"node: expected one of {len(index):,} ids, found {shorten(node_id)}."))
        return node_id

    # Looking up takes a millisecond, less than to hand the request to another thread and its answer to pydantic.
    @app.get("/nodes/{node_id:path}/neighbours")
    async def neighbours(node_id: str, k: Annotated[int, Query(ge=1, le=MOST_NEIGHBOURS)] = 10) -> JSONResponse:
        return JSONResponse([{"id": other, "cosine": cosine} for other, cosine in index.neighbours(known(node_id), k)])

    @app.get("/nodes/{node_id:path}")
    async def node(node_id: str) -> JSONResponse:
        return JSONResponse({"id": node_id, "vector": index.vectors_of([index.row(known(node_id))])[0].tolist()})

    @app.post("/vectors")
    def vectors(new: Annotated[list[NewNode], Field(min_length=1, max_length=MOST_NODES)]) -> JSONResponse:
        features: Any = [one.features for one in new] if any(one.features is not None for one in new) else None
        return JSONResponse(model.vectors(features, [one.neighbours for one in new]).tolist())

    @app.exception_handler(InputError)
    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: Exception) -> JSONResponse:
        told = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        words = f"{'.'.join(map(str, told['loc']))}: {told['msg']}." if told else str(error)
        return JSONResponse({"detail": visible(words)}, 422)

    app.add_middleware(limited)
    return app


def serve(run: Path, host: str = "127.0.0.1", port: int = 8000) -> None:
    """Answer requests about a run folder until SIGTERM."""
    uvicorn.run(make_app(run), host=host, port=port, access_log=False)


if __name__ == "__main__":
    typer.run(serve)
