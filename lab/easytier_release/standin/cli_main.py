"""The command `easytier-cli`: asks a running `easytier-core` for its peers, routes and state."""

from __future__ import annotations

import argparse
import ipaddress
import json
import sys
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from typing import cast

from . import EASYTIER_VERSION, rpc
from .options import Version

SUBCOMMANDS = {"peer": "list", "route": "list", "node": "info"}
"""What can be asked, and the only sub-command each has here, which is also the default."""


def main(arguments: Sequence[str]) -> int:
    """Asks and prints.

    Args:
        arguments: the command line, without the program's name.

    Returns:
        0, or 1 when nobody answers, another program does, or the answer is that it can't.

    Raises:
        SystemExit: after --help, --version and faults of usage.
    """
    parser = _parser()
    given = parser.parse_args(list(arguments))
    if given.question is None:
        parser.error(f"one of {', '.join(SUBCOMMANDS)} is needed")
    host, port = given.rpc_portal
    question = "pairs" if given.question == "peer" and given.verbose else str(given.question)
    try:
        answer = rpc.ask(host, port, question)
    except rpc.PortalError as error:
        print(f"Error: {error}", file=sys.stderr)
        return 1
    if given.verbose or given.output == "json":
        print(json.dumps(answer, indent=2, ensure_ascii=False))
    elif isinstance(answer, list):
        print(_table(cast(list[Mapping[str, object]], answer)))
    else:
        node = cast(Mapping[str, object], answer)
        print(_table([{"key": key, "value": value} for key, value in node.items() if not isinstance(value, dict)]))
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="easytier-cli",
        description="Asks the easytier-core of the same archive; a stand-in for upstream's executable.",
        allow_abbrev=False,
    )
    parser.add_argument("-V", "--version", action="version", version=str(Version("easytier-cli", EASYTIER_VERSION)))
    parser.add_argument(
        "-p",
        "--rpc-portal",
        type=_endpoint,
        default=("127.0.0.1", 15888),
        metavar="ADDRESS",
        help="of easytier-core",
    )
    parser.add_argument("-v", "--verbose", action="store_true", help="all that is known, as JSON")
    parser.add_argument("-o", "--output", choices=("table", "json"), default="table", help="output format")
    parser.add_argument("--no-trunc", action="store_true", help="no effect: columns are never cut here")
    questions = parser.add_subparsers(dest="question", metavar="peer|route|node")
    for question, only in SUBCOMMANDS.items():
        each = questions.add_parser(question, allow_abbrev=False)
        each.add_argument("sub_command", nargs="?", choices=(only,), default=only)
    return parser


def _endpoint(text: str) -> tuple[str, int]:
    host, _, port = text.rpartition(":")
    try:
        return str(ipaddress.ip_address(host.removeprefix("[").removesuffix("]"))), int(port)
    except ValueError as error:
        raise argparse.ArgumentTypeError(
            f"invalid value '{text}': an address and a port, such as 127.0.0.1:15888"
        ) from error


def _table(rows: Sequence[Mapping[str, object]]) -> str:
    columns = list(rows[0]) if rows else []
    cells = [columns, *([str(row[column]) for column in columns] for row in rows)]
    widths = [max(len(line[index]) for line in cells) for index in range(len(columns))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) + " |" for line in cells
    ]
    rule = "|" + "|".join("-" * (width + 2) for width in widths) + "|"
    return "\n".join([lines[0], rule, *lines[1:]]) if columns else ""


def run() -> None:
    """The entry point of the executable."""
    cast(TextIOWrapper, sys.stdout).reconfigure(encoding="utf-8")
    sys.exit(main(sys.argv[1:]))
