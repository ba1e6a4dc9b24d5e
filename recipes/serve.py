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
    """A node that the graph does not have: features in order or by name, ids of neighbours or weights by id."""

    features: list[float] | dict[str, float] | None = None
    neighbours: list[str | int] | dict[str, float] = []


def make_app(run: str | Path) -> FastAPI:
    """The server of a run folder: everything is loaded here, once; requests only look up."""
    model = DGI.load(run, device="cpu")
    graph = model.graph_
    index = open_index(Path(run), graph.ids, lambda: model.transform(graph), graph.node_names)
    model.vectors([dict.fromkeys(model.feature_names_, 0)], [{}])  # so that no request waits for it
    app, described = FastAPI(), {"status": "ok", "nodes": len(index), "model": model.hash_}

    def row_of(node_id: str) -> int:
        if node_id not in index:
            raise HTTPException(404, visible(f"node: expected one of {len(index):,} ids, found {shorten(node_id)}."))
        return index.row(node_id)

    @app.get("/health")
    def health() -> Any:
        return described

    @app.get("/nodes/{node_id:path}/neighbours")
    def neighbours(node_id: str, k: Annotated[int, Query(ge=1, le=MOST_NEIGHBOURS)] = 10) -> Any:
        row_of(node_id)
        return [{"id": other, "cosine": cosine} for other, cosine in index.neighbours(node_id, k)]

    @app.get("/nodes/{node_id:path}")
    def node(node_id: str) -> Any:
        return {"id": node_id, "vector": index.vectors_of([row_of(node_id)])[0].tolist()}

    @app.post("/vectors")
    def vectors(new: Annotated[list[NewNode], Field(min_length=1, max_length=MOST_NODES)]) -> Any:
        features: Any = [one.features for one in new]
        made = all(one is None for one in features)
        return model.vectors(None if made else features, [one.neighbours for one in new]).tolist()

    @app.exception_handler(InputError)
    @app.exception_handler(RequestValidationError)
    def refuse(request: Request, error: Exception) -> JSONResponse:
        told = error.errors()[0] if isinstance(error, RequestValidationError) else {}
        words = f"{'.'.join(map(str, told['loc']))}: {told['msg']}." if told else str(error)
        return JSONResponse({"detail": visible(words)}, 422)

    @app.middleware("http")
    async def limit(request: Request, answer: Any) -> Any:
        size = request.headers.get("content-length", "0" if request.method == "GET" else "")
        if not size.isdecimal() or len(size) > 9 or int(size) > MOST_BYTES:
            return JSONResponse({"detail": f"body: expected a length of at most {MOST_BYTES:,} bytes."}, 413)
        return await answer(request)

    return app


if __name__ == "__main__":
    quiet = {"access_log": False}
    typer.run(lambda run, host="127.0.0.1", port=8000: uvicorn.run(make_app(run), host=host, port=port, **quiet))
