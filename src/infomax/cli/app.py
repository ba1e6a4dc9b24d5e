"""The application that the commands join."""

import typer

app = typer.Typer(
    name="infomax",
    help="Deep Graph Infomax: one vector a node, without a single label.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
