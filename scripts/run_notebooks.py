"""Run the notebooks in docs/notebooks again, and store their outputs in them."""

from __future__ import annotations

from pathlib import Path

import nbformat
from nbclient import NotebookClient

FOLDER = Path(__file__).parents[1] / "docs" / "notebooks"


def main() -> None:
    """Run every notebook in a folder of its own; times and the language's version are not stored."""
    for path in sorted(FOLDER.glob("*.ipynb")):
        notebook = nbformat.read(path, as_version=4)
        client = NotebookClient(notebook, timeout=600, kernel_name="python3", record_timing=False)
        client.execute()
        notebook.metadata = {"kernelspec": notebook.metadata["kernelspec"]}
        nbformat.write(notebook, path)
        print(f"ran {path.relative_to(Path.cwd())}")


if __name__ == "__main__":
    main()
