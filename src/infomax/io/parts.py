"""Folders of parts: parquet files of ids and vectors, ``part-00000.parquet`` and so on.

The footer of a part says of which run its vectors are (a hash of all that they depend on) and of
which nodes; a file ``_parts.json`` says what the vectors depend on. So parts of two runs are never
mixed, and a missing part is noticed. A part appears whole or not at all, and its pages have
checksums, which are compared when they are read.
"""

from __future__ import annotations

import json
from collections.abc import Collection
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from infomax.errors import InputError, format_count
from infomax.io import parquet
from infomax.io.json import json_hash, read_json, to_json

ABOUT_FILE = "_parts.json"
"""Readers of parquet folders skip names that begin with _."""
PART_PATTERN = "part-*.parquet"
REPEAT_EMBED = "Repeat the infomax embed that wrote it: it writes what lacks or is damaged."
NOTE_KEY = b"infomax"
"""The key of a footer under which it says what a part is."""
MODEL_KEY = b"infomax_model"
"""The key of the hash of the model that made the vectors."""
PARTS_KEY = b"infomax_parts"
"""The key of the names of the columns of each part of the vectors."""


@dataclass(frozen=True)
class Note:
    """What the footer of a part says: the hash of its run, and which of all nodes it holds."""

    run: str
    """The hash of the run and of all else that the vectors depend on."""
    first: int
    """The row in the graph of the first node of the part."""
    stop: int
    """The row after that of its last node."""
    nodes: int
    """The number of nodes of all parts."""

    @property
    def metadata(self) -> dict[bytes, bytes]:
        """The note as parquet keeps it."""
        return {NOTE_KEY: to_json(asdict(self)).encode()}


def expected_parts(run_hash: str, node_count: int, nodes_per_part: int) -> dict[str, Note]:
    """The notes of the parts of all nodes, by the names of their files."""
    notes = {}
    for number, first in enumerate(range(0, node_count, nodes_per_part)):
        stop = min(first + nodes_per_part, node_count)
        notes[f"part-{number:05d}.parquet"] = Note(run_hash, first, stop, node_count)
    return notes


def has_parts(path: Path) -> bool:
    """Whether a path is a folder of parquet parts."""
    return path.is_dir() and ((path / ABOUT_FILE).is_file() or any(path.glob(PART_PATTERN)))


def checked_part_files(path: Path) -> list[Path]:
    """The files of a folder of parts, or one such file; refuse those that do not belong together.

    All must have ids and vectors of the same types. Of parts that ``infomax embed`` wrote none may
    be missing or damaged, or be of other vectors.
    """
    paths = sorted(path.glob(PART_PATTERN)) if path.is_dir() else [path]
    # The file says which parts there must be; without it, the parts say so of each other.
    has_about_file = (path / ABOUT_FILE).is_file()
    if has_about_file:
        described = _read_about(path)
        run_hash = json_hash(described)
        node_count = described["nodes"]
        nodes_per_part = described["nodes_per_part"]
    else:
        notes = [note for note in _read_notes(paths) if note is not None]
        if not notes or not path.is_dir():
            return paths
        run_hash = notes[0].run
        node_count = notes[0].nodes
        nodes_per_part = max(note.stop - note.first for note in notes)

    expected = expected_parts(run_hash, node_count, nodes_per_part)
    if len(paths) != len(expected):
        expected_count = format_count(len(expected), "part")
        raise InputError(str(path), expected_count, f"{len(paths):,}", REPEAT_EMBED)
    for name, note in expected.items():
        if reason := describe_damage(path / name, note):
            location = str(path / name)
            raise InputError(location, "a part as infomax embed wrote it", reason, REPEAT_EMBED)
    if has_about_file:
        # A part may have been written anew by another program, which keeps the note of its footer
        # but not the types of its columns.
        _read_notes(paths)
    return paths


def refuse_other_parts(folder: Path, described: dict[str, Any], names: Collection[str]) -> None:
    """Refuse a folder of other vectors, or with parts of other names."""
    if not (folder / ABOUT_FILE).exists():
        stored = described
    else:
        stored = _read_about(folder)
    if stored != described:
        differences = [name for name in described if stored.get(name) != described[name]]
        expected = "a new folder, or parts of the same vectors"
        remedy = "Remove the folder, or choose another."
        raise InputError(str(folder), expected, f"others (by {', '.join(differences)})", remedy)
    for path in sorted(folder.glob(PART_PATTERN)):
        if path.name not in names:
            raise _other(path)


def describe_damage(path: Path, expected: Note, *, reads_all_pages: bool = False) -> str:
    """What is wrong with a part, as a message; "" for nothing.

    A file that is not of these vectors raises InputError.

    Args:
        path: the file.
        expected: what its footer should say.
        reads_all_pages: read all pages, which compares their checksums; else only the footer.
    """
    try:
        (note,) = _read_notes([path])
        if reads_all_pages:
            with parquet.opened(path) as file:
                for _ in file.iter_batches():
                    pass
    except InputError as error:
        return error.found
    # A part of another run must not be mixed in, whatever its state.
    if note is None or note.run != expected.run:
        raise _other(path)
    return "" if note == expected else f"vectors of the nodes from {note.first:,} to {note.stop:,}"


def check_columns(schema: Any, path: Path) -> tuple[Any, Any]:
    """The types of the ids and the vectors in a parquet file; refuse one without them."""
    import pyarrow

    is_list = pyarrow.types.is_fixed_size_list
    lists = [name for name in schema.names if is_list(schema.field(name).type)]
    if "id" not in schema.names or "vector" not in lists:
        columns = ", ".join(f"{field.name} ({field.type})" for field in schema)
        raise InputError(str(path), "columns id and vector (fixed-size list of float)", columns)
    return schema.field("id").type, schema.field("vector").type


def stored_model_hash(file: Any) -> str:
    """The hash of the model that made the vectors, by the footer of a parquet file; or ""."""
    content: bytes = (file.metadata.metadata or {}).get(MODEL_KEY, b"")
    return content.decode("ascii", "replace")


def stored_part_columns(file: Any) -> dict[str, list[str]]:
    """The names of the columns of each part of vectors, by the footer of a parquet file.

    It is empty where the footer does not say.
    """
    try:
        parts = json.loads((file.metadata.metadata or {}).get(PARTS_KEY, b"{}"))
        return {str(name): [str(column) for column in columns] for name, columns in parts.items()}
    except (AttributeError, TypeError, ValueError):
        return {}


def _read_notes(paths: list[Path]) -> list[Note | None]:
    """What the footers of parquet files say; None for a file that other programs wrote.

    All files must have ids and vectors of the same types, and vectors of the same model.
    """
    notes: list[Note | None] = []
    first_types: tuple[Any, Any] | None = None
    first_model: str | None = None
    for path in paths:
        with parquet.opened(path) as file:
            types = check_columns(file.schema_arrow, path)
            if first_types is None:
                first_types = types
            if types != first_types:
                expected = f"columns of the types of {paths[0]}"
                raise InputError(str(path), expected, " and ".join(map(str, types)))
            model = stored_model_hash(file)
            if first_model is None:
                first_model = model
            if model != first_model:
                raise _other(path)
            notes.append(_read_note(file, path))
    return notes


def _read_note(file: Any, path: Path) -> Note | None:
    """What the footer of a part says; refused where it has another number of rows."""
    content = (file.metadata.metadata or {}).get(NOTE_KEY)
    if content is None:
        return None
    note = Note(**json.loads(content))
    row_count = file.metadata.num_rows
    if row_count != note.stop - note.first:
        expected = format_count(note.stop - note.first, "row")
        raise InputError(str(path), expected, f"{row_count:,}", REPEAT_EMBED)
    return note


def _read_about(folder: Path) -> dict[str, Any]:
    """What ``_parts.json`` says the vectors depend on."""
    remedy = "Remove this file, and repeat the infomax embed that wrote it."
    described = read_json(folder / ABOUT_FILE, remedy)
    counts = [described.get(name) for name in ("nodes", "nodes_per_part")]
    if any(type(count) is not int or count < 1 for count in counts):
        expected = "the numbers nodes and nodes_per_part"
        raise InputError(str(folder / ABOUT_FILE), expected, "others", remedy)
    return described


def _other(path: Path) -> InputError:
    expected = "a part of the vectors that the others in this folder are of"
    found = "another file, or one of another run"
    return InputError(str(path), expected, found, "Move it to another folder.")
