"""The matrix cache: the same numbers back, bounded, and never misled by a bad file."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os

import numpy as np
import pytest

from engine.physics import matrix_cache
from engine.physics.geometry import CTGeometry
from engine.physics.matrix_cache import MatrixCache, default_cache
from engine.physics.system_matrix import build

GEOMETRY = CTGeometry.sparse_view(6, size=16)


@pytest.fixture
def builds(monkeypatch):
    """Counts how often a matrix is really built."""
    calls = []

    def counting(geometry, dtype):
        calls.append(geometry)
        return build(geometry, dtype)

    monkeypatch.setattr(matrix_cache, "build", counting)
    return calls


def only_file(folder):
    (path,) = folder.glob("*.csr")
    return path


def assert_same(one, two):
    for a, b in ((one.forward, two.forward), (one.adjoint, two.adjoint)):
        assert a.shape == b.shape
        for name in ("crow", "col", "value"):
            left, right = getattr(a, name), getattr(b, name)
            assert left.dtype == right.dtype
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_the_cached_matrix_is_the_built_one(tmp_path, builds, dtype):
    first = MatrixCache(tmp_path).get(GEOMETRY, dtype)
    second = MatrixCache(tmp_path).get(GEOMETRY, dtype)
    assert len(builds) == 1
    assert_same(first, second)
    assert_same(first, build(GEOMETRY, dtype))


def test_memory_serves_the_same_object(tmp_path, builds):
    cache = MatrixCache(None)
    assert cache.get(GEOMETRY) is cache.get(GEOMETRY)
    assert len(builds) == 1


def test_precision_and_geometry_have_their_own_entries(tmp_path, builds):
    cache = MatrixCache(tmp_path)
    cache.get(GEOMETRY, np.float32)
    assert cache.get(GEOMETRY, np.float64).forward.value.dtype == np.float64
    cache.get(CTGeometry.sparse_view(7, size=16))
    assert len(builds) == 3


def test_a_new_builder_version_does_not_read_old_files(tmp_path, builds, monkeypatch):
    MatrixCache(tmp_path).get(GEOMETRY)
    monkeypatch.setattr(matrix_cache, "BUILDER_VERSION", 999)
    MatrixCache(tmp_path).get(GEOMETRY)
    assert len(builds) == 2


def half_written(data: bytes) -> bytes:
    return data[: len(data) // 2]


def bit_flipped(data: bytes) -> bytes:
    return data[:-50] + bytes([data[-50] ^ 1]) + data[-49:]


def empty(data: bytes) -> bytes:
    return b""


def not_ours(data: bytes) -> bytes:
    return b"\x80\x04\x95 a pickle, perhaps" + b"\n" + data


def forged(change):
    """A file with a correct checksum and a broken structure."""

    def damage(data: bytes) -> bytes:
        line, body = data.split(b"\n", 1)
        header = json.loads(line)
        rows = GEOMETRY.views * GEOMETRY.detectors + 1
        numbers = np.frombuffer(body, dtype=np.int32).copy()
        crow, col = numbers[:rows], numbers[rows : rows + header["entries"]]
        change(header, crow, col, numbers[rows + header["entries"] :])
        body = numbers.tobytes()
        header["sha256"] = hashlib.sha256(body).hexdigest()
        return json.dumps(header).encode() + b"\n" + body

    return damage


def column_too_high(header, crow, col, value):
    col[5] = 2**31 - 1


def column_negative(header, crow, col, value):
    col[5] = -1


def pointer_too_high(header, crow, col, value):
    crow[10] = 2**30


def pointer_falls(header, crow, col, value):
    crow[10], crow[30] = crow[30], crow[10]


def pointer_ends_beyond(header, crow, col, value):
    crow[-1] += 1


def value_not_a_number(header, crow, col, value):
    value[3] = 0x7FC00000


def entries_enormous(header, crow, col, value):
    header["entries"] = 10**30


def entries_is_text(header, crow, col, value):
    header["entries"] = "many"


def entries_wrong(header, crow, col, value):
    header["entries"] -= 1


def other_geometry(header, crow, col, value):
    header["key"] = "another"


@pytest.mark.parametrize(
    "damage",
    [
        half_written,
        bit_flipped,
        empty,
        not_ours,
        *map(
            forged,
            (
                column_too_high,
                column_negative,
                pointer_too_high,
                pointer_falls,
                pointer_ends_beyond,
                value_not_a_number,
                entries_enormous,
                entries_is_text,
                entries_wrong,
                other_geometry,
            ),
        ),
    ],
)
def test_a_damaged_or_hostile_file_is_replaced(tmp_path, builds, damage):
    good = MatrixCache(tmp_path).get(GEOMETRY)
    path = only_file(tmp_path)
    written = path.read_bytes()
    path.write_bytes(damage(written))
    assert_same(MatrixCache(tmp_path).get(GEOMETRY), good)
    assert len(builds) == 2
    assert path.read_bytes() == written


def test_memory_bound_holds_and_the_oldest_goes_first(builds):
    geometries = [CTGeometry.sparse_view(views, size=16) for views in (6, 7, 8)]
    size = max(build(g).nbytes for g in geometries)
    cache = MatrixCache(None, memory_bytes=int(2.2 * size))
    a, b, c = geometries
    for geometry in (a, b, a, c):  # b is the least recently used when c comes
        cache.get(geometry)
        assert cache.memory_used_bytes <= cache.memory_bytes
    assert builds == [a, b, c]
    cache.get(a)
    assert len(builds) == 3
    cache.get(b)
    assert len(builds) == 4


def test_disk_bound_holds_and_the_oldest_goes_first(tmp_path, builds):
    geometries = [CTGeometry.sparse_view(views, size=48) for views in (6, 7, 8)]
    size = max(build(g).forward.nbytes for g in geometries) + 4096
    bound = int(2.5 * size)
    for age, geometry in enumerate(geometries):
        before = set(tmp_path.iterdir())
        MatrixCache(tmp_path, disk_bytes=bound).get(geometry)
        (new,) = set(tmp_path.iterdir()) - before
        os.utime(new, (1000 + age, 1000 + age))
        assert sum(path.stat().st_size for path in tmp_path.iterdir()) <= bound
    assert len(list(tmp_path.iterdir())) == 2
    MatrixCache(tmp_path, disk_bytes=bound).get(geometries[1])
    assert len(builds) == 3  # the second and third are still there


def test_a_matrix_larger_than_a_bound_is_used_but_not_kept(tmp_path, builds):
    cache = MatrixCache(tmp_path, memory_bytes=100, disk_bytes=100)
    assert cache.get(GEOMETRY).forward.col.size > 0
    assert cache.memory_used_bytes == 0
    assert list(tmp_path.iterdir()) == []


def test_an_unwritable_folder_does_not_matter(tmp_path, builds):
    blocked = tmp_path / "file"
    blocked.write_text("a file where the folder should be")
    assert_same(MatrixCache(blocked / "cache").get(GEOMETRY), build(GEOMETRY))


def test_a_full_disk_leaves_no_half_file(tmp_path, builds, monkeypatch):
    def full(file, key, matrix):
        file.write(b"some of it")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(matrix_cache, "write_matrix", full)
    assert MatrixCache(tmp_path).get(GEOMETRY).forward.col.size > 0
    assert list(tmp_path.iterdir()) == []


def test_what_a_killed_process_left_is_swept_up(tmp_path, builds):
    left, fresh = tmp_path / "left.part", tmp_path / "fresh.part"
    left.write_bytes(b"half")
    fresh.write_bytes(b"another process is writing this")
    os.utime(left, (1000, 1000))
    MatrixCache(tmp_path).get(GEOMETRY)
    assert not left.exists()
    assert fresh.exists()


def _entries_from(folder: str) -> int:
    return MatrixCache(folder).get(GEOMETRY).forward.col.size


def test_two_processes_can_share_the_folder(tmp_path):
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        counts = pool.map(_entries_from, [str(tmp_path)] * 6, chunksize=1)
    assert set(counts) == {build(GEOMETRY).forward.col.size}
    only_file(tmp_path)


def test_the_environment_chooses_the_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("DUALSCOPE_CACHE", str(tmp_path / "here"))
    default_cache().get(GEOMETRY)
    only_file(tmp_path / "here" / "matrices")
