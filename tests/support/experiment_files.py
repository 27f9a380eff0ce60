"""Reading back what an experiment wrote to a folder, usually 'out'."""

import json
from pathlib import Path


def body(name, folder="out"):
    return json.loads(Path(f"{folder}/{name}.json").read_text())


def all_rows(name, folder="out"):
    return [row for rows in body(name, folder)["cases"].values() for row in rows]
