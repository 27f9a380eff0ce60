"""The tags of a slice: complete, searchable, quoted, and without names unless they are wanted."""

import numpy as np
import pydicom
import pytest
from dicom_files import SECRETS, header, item, write_series
from pydicom.dataelem import DataElement
from PySide6.QtCore import QPoint
from window_driver import until

from app.data.tags import DEEPEST, LONGEST, MASKED, MOST_ROWS, UNREADABLE, tag_rows
from app.images.menu import PaneMenu


def value_of(rows, name):
    return next(row.value for row in rows if row.name == name)


def test_every_element_is_a_row_and_sequences_are_indented():
    data = header(SliceThickness=2.5)
    data.ReferencedImageSequence = [item(ReferencedSOPInstanceUID="1.2.9")]
    rows = tag_rows(data, masked=False)
    top = [row for row in rows if row.depth == 0]
    assert [row.tag for row in top] == [
        f"({t.group:04X},{t.element:04X})" for t in sorted(data.keys())
    ]
    assert value_of(rows, "Slice Thickness") == "2.5"
    assert value_of(rows, "Image Type") == "ORIGINAL\\PRIMARY\\AXIAL"
    assert value_of(rows, "Referenced Image Sequence") == "1 item"
    inner = next(row for row in rows if row.name == "Referenced SOP Instance UID")
    assert (inner.depth, inner.value) == (1, "1.2.9")


def test_the_patient_is_hidden_when_the_screen_hides_him():
    data = header(ReferringPhysicianName="House^Gregory")
    hidden, whole = tag_rows(data), tag_rows(data, masked=False)
    assert not any(secret in row.value for row in hidden for secret in (*SECRETS, "House"))
    assert value_of(hidden, "Patient's Name") == MASKED
    assert value_of(whole, "Patient's Name") == SECRETS[0]
    assert value_of(hidden, "Modality") == "CT"


def test_what_a_stranger_wrote_is_quoted_cut_and_never_fatal():
    data = header(StudyDescription="a\x1b[31mred\u202etxt", ImageComments="x" * 5000)
    data[0x00091001] = DataElement(0x00091001, "UN", b"\x00" * 9)
    rows = tag_rows(data)
    assert value_of(rows, "Study Description") == "a\\x1b[31mred\\u202etxt"
    assert len(value_of(rows, "Image Comments")) <= LONGEST + 2
    assert value_of(rows, "Private tag data") == "9 bytes"

    class Broken(pydicom.Dataset):
        def __getitem__(self, key):
            raise RuntimeError("no")

    broken = Broken()
    broken.Modality = "CT"
    assert [row.value for row in tag_rows(broken)] == [UNREADABLE]


def test_sequences_without_end_end():
    deep = item(ImageComments="the bottom")
    for _ in range(40):
        deep = item(ReferencedImageSequence=[deep])
    assert max(row.depth for row in tag_rows(deep)) == DEEPEST
    wide = header()
    wide.ReferencedImageSequence = [item(ImageComments="x") for _ in range(MOST_ROWS)]
    assert len(tag_rows(wide)) == MOST_ROWS


# -- in the window --------------------------------------------------------------------------


@pytest.fixture
def tags(bench, tmp_path):
    write_series(tmp_path, np.arange(5) * 2.0)
    bench.open(tmp_path)
    bench.window.menus.actions["tags"].trigger()
    view = bench.window.tag_window
    until(lambda: view.rows, what="the tags")
    yield view
    bench.wait_quiet()
    view.search.clear()
    view.close()


def test_the_tags_are_those_of_the_slice_and_can_be_searched(bench, tags):
    link = bench.window.grid.link
    seen = set()
    for number in range(5):
        link.set_slice(number)
        bench.wait_quiet()
        at = bench.window.setup.data.placements[number].position[2]
        assert str(at) in value_of(tags.rows, "Image Position (Patient)")
        seen.add(value_of(tags.rows, "Instance Number"))
    assert seen == {"1", "2", "3", "4", "5"}
    assert len(tags.shown_rows()) == len(tags.rows)
    for words in ("slice THICK", "0018,0050"):
        tags.search.setText(words)
        assert [row[1] for row in tags.shown_rows()] == ["Slice Thickness"]
    tags.search.setText("no such thing")
    assert not tags.shown_rows()


def test_the_menu_of_an_image_leads_to_them(bench, tags):
    tags.close()
    pane = bench.window.grid.pane("reference")
    menu = PaneMenu(pane, QPoint(9, 9))
    (action,) = [one for one in menu.actions() if one.text().startswith("DICOM tags…")]
    action.trigger()
    assert tags.isVisible()
    menu.deleteLater()


def test_names_are_seen_only_when_they_are_not_hidden(bench, tags):
    mask = bench.window.menus.actions["mask"]
    assert mask.isChecked()
    assert value_of(tags.rows, "Patient ID") == MASKED
    mask.setChecked(False)
    until(lambda: value_of(tags.rows, "Patient ID") == SECRETS[1], what="the number")
    mask.setChecked(True)
    until(lambda: value_of(tags.rows, "Patient ID") == MASKED, what="the mask")


def test_other_data_have_no_tags(bench, tags):
    bench.open("demo:ct")
    until(lambda: not tags.rows, what="the tags to go")
    assert "not DICOM" in tags.note.text()
