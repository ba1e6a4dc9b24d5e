"""A server of a run's vectors, to copy and change; see docs/how-to/serving.md.

python serve.py RUN [--type TYPE] [--port 8000]
"""

from __future__ import annotations

from asyncio import CancelledError
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer
import uvicorn
from fastapi import FastAPI, HTTPException, Query, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from pydantic import BaseModel, ConfigDict, Field

from infomax import DGI, InputError
from infomax.errors import visible
from infomax.index import EXACT_NODES, NeighbourIndex, has_faiss
from infomax.io.column_names import matching_type
from infomax.training.runs import types_of, vectors_of_run

MOST_BYTES, MOST_NODES, MOST_NEIGHBOURS = 1 << 20, 100, 100
PATIENCE = 5
"""Seconds after SIGTERM in which requests that have begun are answered."""


class NewNode(BaseModel):
    """A new node: features in order or by name; ids of neighbours, or weights by id; of several
    types, by type."""

    model_config = ConfigDict(extra="forbid")  # `neighbors` would be a node without neighbours

    features: list[float] | dict[str, Any] | None = None
    neighbours: list[str | int] | dict[str, float | list[str | int] | dict[str, float]] = []


def limited(app: Any) -> Any:
    """Refuse long bodies and those of unknown length, before they are read, and half-sent ones when
    the server ends."""

    async def answer(scope: Any, receive: Any, send: Any) -> None:
        headers = Request(scope).headers if scope["type"] == "http" else {}
        size = headers.get("content-length", "0")
        short = size.isdecimal() and len(size) < 10 and int(size) <= MOST_BYTES
        code, words = 413, f"body: expected a length of at most {MOST_BYTES:,} bytes."
        if short and "transfer-encoding" not in headers:  # which would count before the length
            try:
                return await app(scope, receive, send)
            except CancelledError:
                code, words = 503, "body: expected the rest of it before the server ends."
        return await JSONResponse({"detail": words}, code)(scope, receive, send)

    return answer


def make_app(run: str | Path) -> FastAPI:
    """The server of a run folder: everything is loaded here, once; requests only look up."""
    model = DGI.load(run, device="cpu")
    graph = model.graph_
    known = vectors_of_run(Path(run), graph) or model.transform(graph)
    use_index = len(known) > EXACT_NODES and has_faiss()
    index = NeighbourIndex.of(known) if use_index else known
    model.vectors_of(
        [dict.fromkeys(model.feature_names_, 0)], [{}]
    )  # so that no request waits for it
    app, described = FastAPI(), {"status": "ok", "nodes": len(index), "model": model.hash_}
    app.api_route("/health", methods=["GET", "HEAD"])(lambda: described)

    def found(node: str) -> int:
        try:
            return index.row(node)
        except InputError as error:
            raise HTTPException(404, str(error)) from None

    def named(row: int, **values: Any) -> dict[str, Any]:
        name = {} if index.node_names is None else {"name": index.node_names[row]}
        return {"id": index.ids[[row]].tolist()[0], **name, **values}

    # Looking up takes a millisecond, less than to hand the request to another thread and its answer
    # to pydantic.
    @app.get("/nodes/{node:path}/neighbours")
    async def neighbours(
        node: str, k: Annotated[int, Query(ge=1, le=MOST_NEIGHBOURS)] = 10
    ) -> JSONResponse:
        rows, cosines = index.nearest(np.array([found(node)]), k)
        pairs = zip(rows[0].tolist(), cosines[0].tolist(), strict=True)
        return JSONResponse([named(row, cosine=cosine) for row, cosine in pairs])

    @app.get("/nodes/{node:path}")
    async def vector(node: str) -> JSONResponse:
        return JSONResponse(named(row := found(node), vector=known.vectors[row].tolist()))

    @app.post("/neighbours")
    def nearest(
        vectors: Annotated[list[list[float]], Field(min_length=1, max_length=MOST_NODES)],
        k: Annotated[int, Query(ge=1, le=MOST_NEIGHBOURS)] = 10,
    ) -> JSONResponse:
        if len(set(map(len, vectors))) > 1:
            raise InputError("vectors", "as many numbers in each", "others")
        pairs = zip(*index.nearest(np.array(vectors, np.float32), k), strict=True)
        near = [zip(rows.tolist(), cosines.tolist(), strict=True) for rows, cosines in pairs]
        return JSONResponse([[named(row, cosine=cosine) for row, cosine in one] for one in near])

    @app.post("/vectors")
    def vectors(
        new: Annotated[list[NewNode], Field(min_length=1, max_length=MOST_NODES)],
    ) -> JSONResponse:
        features: Any = (
            [one.features for one in new] if any(one.features is not None for one in new) else None
        )
        return JSONResponse(model.vectors_of(features, [one.neighbours for one in new]).tolist())

    @app.exception_handler(InputError)
    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: Exception) -> JSONResponse:
        first = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        message = f"{'.'.join(map(str, first['loc']))}: {first['msg']}." if first else str(error)
        if first.get("type") == "extra_forbidden":
            location, key = ".".join(map(str, first["loc"][:-1])), first["loc"][-1]
            message = (
                f"{location}: expected the keys {', '.join(NewNode.model_fields)}, found {key}."
            )
        return JSONResponse({"detail": visible(message)}, 422)

    app.add_middleware(limited)
    return app


def serve(run: Path, type: str = "", host: str = "127.0.0.1", port: int = 8000) -> None:
    """Answer requests about a run folder, of several types of nodes about one of them, until
    SIGTERM."""
    try:
        app = make_app(run / (matching_type(type, types_of(run)) or type))
    except InputError as error:
        typer.echo(f"error: {error}", err=True)
        raise typer.Exit(2) from None
    uvicorn.run(app, host=host, port=port, access_log=False, timeout_graceful_shutdown=PATIENCE)


if __name__ == "__main__":
    typer.run(serve)
