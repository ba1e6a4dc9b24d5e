"""The application that the commands join."""

import typer

app = typer.Typer(
    name="infomax",
    help="Deep Graph Infomax: one vector a node, without a single label.",
    add_completion=False,
    rich_markup_mode=None,  # plain help: half the time, and "[default: 512]" is not taken for markup
    pretty_exceptions_enable=False,
)
