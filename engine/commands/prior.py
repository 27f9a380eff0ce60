"""``dualscope prior list|info``."""

from __future__ import annotations

import argparse
import json

from engine.errors import RequestError
from engine.priors.library import list_priors, load_prior


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(dest="action", metavar="list|info", parser_class=type(parser))
    actions.add_parser("list", help="Names and what they are.")
    info = actions.add_parser("info", help="Everything known about one prior, as JSON.")
    info.add_argument("name", metavar="NAME")
    info.add_argument("--modality", default="ct", metavar="ct|mr", help="Default: ct.")


def run(options: argparse.Namespace) -> int:
    if options.action == "list":
        for modality in ("CT", "MR"):
            for name in list_priors(modality):
                print(f"{modality}  {name:12s} {load_prior(name, modality).info.description}")
        return 0
    if options.action == "info":
        if options.modality not in ("ct", "mr"):
            raise RequestError(f"--modality '{options.modality}' is not known: choose ct, mr.")
        print(
            json.dumps(load_prior(options.name, options.modality.upper()).info.to_dict(), indent=1)
        )
        return 0
    raise RequestError("Say what to do: dualscope prior list, or dualscope prior info NAME.")
