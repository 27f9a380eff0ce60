"""Reading back what an experiment wrote to the folder 'out'."""

import json
from pathlib import Path


def body(name):
    return json.loads(Path(f"out/{name}.json").read_text())


def all_rows(name):
    return [row for rows in body(name)["cases"].values() for row in rows]
