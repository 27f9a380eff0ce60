"""``dualscope prior list|info|import|train``."""

from __future__ import annotations

import argparse
import json

from engine.commands import prior_import, prior_train
from engine.errors import RequestError
from engine.priors.catalogue import find_prior, list_priors, list_supervised


def add_options(parser: argparse.ArgumentParser) -> None:
    actions = parser.add_subparsers(
        dest="action", metavar="list|info|import|train", parser_class=type(parser)
    )
    actions.add_parser("list", help="Names and what they are.")
    info = actions.add_parser("info", help="Everything known about one prior, as JSON.")
    info.add_argument("name", metavar="NAME|FILE")
    prior_import.add_options(
        actions.add_parser("import", help="Convert a checkpoint without running its code.")
    )
    prior_train.add_options(actions.add_parser("train", help="Train a prior from images."))


def run(options: argparse.Namespace) -> int:
    if options.action == "list":
        for modality in ("CT", "MR"):
            for name in [*list_priors(modality), *list_supervised(modality)]:
                print(f"{modality}  {name:12s} {find_prior(name, modality).info.description}")
        return 0
    if options.action == "info":
        print(json.dumps(find_prior(options.name, "CT").info.to_dict(), indent=1))
        return 0
    if options.action == "import":
        return prior_import.run(options)
    if options.action == "train":
        return prior_train.run(options)
    raise RequestError(
        "Say what to do: dualscope prior list, info NAME, import FILE OUT or train DATA."
    )
