"""Other people's checkpoints, converted to our format without running anything in them.

No class of the file is instantiated, no source in it executed, and no name in it imported: see
``safe_pickle``. Because the file's content never becomes more than numbers, text and plain
containers, and because everything it declares is bounded before memory is reserved, the reading
happens in this process. A child process under resource limits would be a second wall, but every
way of starting the engine (console, packaged application, tests) would have to cooperate, and
limits on address space say little: the libraries under torch reserve far more than they use.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from engine.files.path_safety import check_apart
from engine.physics.units import IntensityMap
from engine.priors.importing.checkpoint import (
    Checkpoint,
    check_size,
    plain,
    read_json,
    read_weights,
)
from engine.priors.importing.diffusers_folder import read_diffusers_folder
from engine.priors.importing.edm_pickle import read_edm_pickle
from engine.priors.importing.state_dict import recognise
from engine.priors.importing.stored import is_safetensors, read_safetensors
from engine.priors.importing.torch_zip import read_torch_zip
from engine.priors.safetensors_file import PriorHeader, save_prior
from engine.spec.errors import RequestError, marked

LONGEST_FACT = 5000
PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
LEGACY_TORCH = b"\x80\x02\x8a\x0al\xfc\x9cF\xf9 j\xa8P\x19."


def import_checkpoint(
    path: Path | str,
    out: Path | str,
    *,
    config: Mapping[str, Any] | Path | str | None = None,
    intensity: IntensityMap | None = None,
    lowest_hu: float | None = None,
    symmetric: bool = False,
    name: str | None = None,
    licence: str | None = None,
    training_data: str | None = None,
    description: str | None = None,
    half: bool = True,
    overwrite: bool = False,
) -> PriorHeader:
    """Convert a checkpoint to a prior.

    Parameters
    ----------
    path
        An NVlabs EDM snapshot (.pkl), a file of ``torch.save`` with a state dict (InverseBench,
        guided-diffusion), or a diffusers folder.
    out
        The .safetensors file to write, at once or not at all.
    config
        Settings of the network where the file does not tell them, or a JSON file of them.
    intensity
        What the network's numbers mean. Needed unless it has two channels, which are the real
        and imaginary part of an MR image.
    lowest_hu
        CT: where the training images were clipped below, if they were.
    symmetric
        Whether it was trained on mirrored images as well.
    half
        Store float16 instead of float32.

    Raises
    ------
    RequestError
        In one sentence naming the file: it is broken, hostile, or not one we know.
    """
    path, out = Path(path), Path(out)
    if out.suffix != ".safetensors":
        raise RequestError(f"{out} must end in .safetensors.")
    if not out.absolute().parent.is_dir():
        raise RequestError(f"{out}: there is no folder {out.absolute().parent}.")
    if out.exists() and not overwrite:
        raise RequestError(f"{out} exists already; say ⟦overwrite⟧ to replace it.")
    check_apart([out], [path, *([Path(config)] if isinstance(config, Path | str) else [])])
    settings = read_config(config)
    texts = {"name": name or out.stem, "licence": licence, "training_data": training_data}
    texts["description"] = description
    try:
        checkpoint = open_checkpoint(path, settings)
        meaning = (intensity or _intensity(checkpoint)).to_dict()
        if lowest_hu is not None:
            meaning["lowest_hu"] = lowest_hu
        header = replace(_header(checkpoint, meaning, texts), symmetric=symmetric)
        PriorHeader.from_strings(header.to_strings())  # as it will be read again
        weights = read_weights(checkpoint)
    except RequestError as error:
        raise RequestError(f"{path} is not imported: {marked(error).rstrip('.')}.") from error
    except OSError as error:
        raise RequestError(f"{path} cannot be read: {error.strerror or error}.") from error
    # random frequencies of an embedding would lose their meaning in half precision
    exact = any(weight.endswith("map_noise.freqs") for weight in weights)
    save_prior(out, header, weights, half=half and not exact)
    return header


def open_checkpoint(path: Path, config: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint in a file or folder, recognised and described, its numbers not yet read."""
    wanted = config.get("architecture")
    checkpoint = _read(path, {k: v for k, v in config.items() if k != "architecture"})
    if wanted not in (None, checkpoint.architecture):
        found = checkpoint.architecture
        raise RequestError(f"its weights are those of '{found}', not of '{str(wanted)[:60]}'")
    return checkpoint


def _read(path: Path, config: Mapping[str, Any]) -> Checkpoint:
    """The checkpoint, by a reader chosen from the file's first bytes and never from its name."""
    if not path.exists():
        raise RequestError("there is no such file")
    if path.is_dir():
        return read_diffusers_folder(path, config)
    if not path.is_file():
        raise RequestError("it is not a file")
    check_size(path)
    with path.open("rb") as stream:
        start = stream.read(512)
    if start.startswith(b"PK\x03\x04"):
        place, weights = read_torch_zip(path)
        origin = f"torch.save file, weights under '{place}'" if place else "torch.save file"
        return recognise(weights, config, path, origin)
    if start.startswith(LEGACY_TORCH):
        raise RequestError(
            "it is in torch's format of before 2020; load it with the program it belongs to and "
            "save its state dict again"
        )
    if start[:2] in PICKLES:
        if config:
            raise RequestError("it describes its network itself, so it takes no configuration")
        return read_edm_pickle(path)
    if is_safetensors(start):
        return recognise(read_safetensors(path), config, path, "safetensors file")
    if start[257:262] == b"ustar":
        raise RequestError("it is a tar archive; give the checkpoint inside of it")
    raise RequestError("it is no checkpoint of a kind that Dualscope knows")


def read_config(config: Mapping[str, Any] | Path | str | None) -> Mapping[str, Any]:
    """Settings, from a JSON file if a path is given."""
    if config is None:
        return {}
    where = "The configuration"
    try:
        if isinstance(config, Path | str):
            where = str(config)
            config = read_json(Path(config))
        return plain(dict(config))
    except OSError as error:
        raise RequestError(f"{where} cannot be read: {error.strerror}.") from error
    except (RequestError, ValueError, TypeError) as error:
        said = str(error).rstrip(".")
        raise RequestError(f"{where} is not a configuration: {said}.") from error


def _intensity(checkpoint: Checkpoint) -> IntensityMap:
    if checkpoint.channels == 2:
        return IntensityMap("mr")
    raise RequestError(
        "it does not say what its numbers mean: add ⟦hu_scale⟧ 800 for a CT network trained on "
        "-800 to 800 HU as -1 to 1 (HU = scale x + offset), or ⟦mr⟧"
    )


def _header(
    checkpoint: Checkpoint, intensity: dict[str, Any], texts: Mapping[str, str | None]
) -> PriorHeader:
    with checkpoint.source.open("rb") as stream:
        sha256 = hashlib.file_digest(stream, "sha256").hexdigest()
    # names of files need not be valid text
    origin = checkpoint.source.name.encode("utf-8", "replace").decode()
    header = PriorHeader(
        architecture=checkpoint.architecture,
        architecture_kwargs=checkpoint.architecture_kwargs,
        preconditioning=checkpoint.preconditioning,
        preconditioning_kwargs=checkpoint.preconditioning_kwargs,
        sigma_data=checkpoint.sigma_data,
        sigma_min=checkpoint.sigma_min,
        sigma_max=checkpoint.sigma_max,
        channels=checkpoint.channels,
        intensity=intensity,
        native_size=checkpoint.native_size,
        source_sha256=sha256,
        name=texts.get("name") or "",
        licence=texts.get("licence") or checkpoint.licence,
        training_data=texts.get("training_data") or "unknown (imported)",
        description=texts.get("description") or f"Imported from {origin} ({checkpoint.format}).",
    )
    facts = {"Imported from": origin, "Format": checkpoint.format, "sha256": sha256}
    facts |= {**checkpoint.facts, "Licence": header.licence}
    # as code, so that nothing in the file's own text is taken for markup
    lines = [f"- {k}: `{text[:LONGEST_FACT].replace('`', chr(39))}`\n" for k, text in facts.items()]
    card = f"# {header.name}\n\n{''.join(lines)}"
    return replace(header, model_card=card)
