"""Page blobs: pages are written, cleared, compared with snapshots, resized and numbered."""

import os

import pytest
from azure.storage.blob import BlobType, SequenceNumberAction

from conftest import KIB, MIB, container_client, content, refused, signed

PAGE = 512


@pytest.fixture
def disk(blob):
    blob.create_page_blob(64 * KIB)
    return blob


def filled_page(number):
    return bytes([number]) * PAGE


def ranges(blob, **more):
    """Written ranges and cleared ranges as pairs of page numbers, the second not included."""
    found = list(blob.list_page_ranges(**more))
    as_pairs = lambda cleared: [(one.start // PAGE, (one.end + 1) // PAGE) for one in found if one.cleared == cleared]  # noqa: E731
    return as_pairs(False), as_pairs(True)


def test_a_new_one_is_zeros(disk):
    assert content(disk) == bytes(64 * KIB)
    assert ranges(disk) == ([], [])
    properties = disk.get_blob_properties()
    assert (properties.blob_type, properties.size) == (BlobType.PAGEBLOB, 64 * KIB)
    assert properties.page_blob_sequence_number == 0


def test_pages_are_written_and_cleared(disk):
    disk.upload_page(filled_page(1) + filled_page(2), offset=0, length=2 * PAGE)
    disk.upload_page(filled_page(3), offset=2 * PAGE, length=PAGE)
    disk.upload_page(filled_page(4), offset=10 * PAGE, length=PAGE)
    assert ranges(disk) == ([(0, 3), (10, 11)], [])
    disk.clear_page(offset=PAGE, length=PAGE)
    assert ranges(disk) == ([(0, 1), (2, 3), (10, 11)], [])
    expected = filled_page(1) + bytes(PAGE) + filled_page(3) + bytes(7 * PAGE) + filled_page(4)
    assert content(disk).rstrip(b"\0") == expected
    assert content(disk, offset=PAGE - 1, length=PAGE + 2) == b"\1" + bytes(PAGE) + b"\3"


def test_zeros_that_are_written_are_a_range(disk):
    disk.upload_page(bytes(PAGE), offset=0, length=PAGE)
    assert ranges(disk) == ([(0, 1)], [])


def test_pages_over_pages(disk):
    disk.upload_page(filled_page(1) * 8, offset=0, length=8 * PAGE)
    disk.upload_page(filled_page(2) * 2, offset=3 * PAGE, length=2 * PAGE)
    disk.upload_page(filled_page(3) * 4, offset=6 * PAGE, length=4 * PAGE)
    found = content(disk, length=10 * PAGE, offset=0)
    assert [found[number * PAGE] for number in range(10)] == [1, 1, 1, 2, 2, 1, 3, 3, 3, 3]
    assert ranges(disk) == ([(0, 10)], [])


def test_ranges_of_a_part(disk):
    disk.upload_page(filled_page(1) * 8, offset=0, length=8 * PAGE)
    assert ranges(disk, offset=2 * PAGE, length=3 * PAGE) == ([(2, 5)], [])
    assert ranges(disk, offset=20 * PAGE, length=PAGE) == ([], [])


def test_ranges_in_pages(disk):
    for number in range(0, 14, 2):
        disk.upload_page(filled_page(1), offset=number * PAGE, length=PAGE)
    found = disk.list_page_ranges(results_per_page=3).by_page()
    assert [[one.start // PAGE for one in page] for page in found] == [[0, 2, 4], [6, 8, 10], [12]]
    assert [one.start // PAGE for one in disk.list_page_ranges()] == list(range(0, 14, 2))


def test_the_difference_to_a_snapshot(disk):
    disk.upload_page(filled_page(1) * 4, offset=0, length=4 * PAGE)
    first = disk.create_snapshot()["snapshot"]
    disk.clear_page(offset=0, length=PAGE)
    disk.upload_page(filled_page(2), offset=8 * PAGE, length=PAGE)
    second = disk.create_snapshot()["snapshot"]
    disk.upload_page(filled_page(3), offset=20 * PAGE, length=PAGE)
    assert ranges(disk, previous_snapshot=first) == ([(8, 9), (20, 21)], [(0, 1)])
    assert ranges(disk, previous_snapshot=second) == ([(20, 21)], [])
    changed = [(one.start // PAGE, one.cleared) for one in disk.list_page_ranges(previous_snapshot=first)]
    assert changed == [(0, True), (8, False), (20, False)]


def test_the_size_changes(disk):
    disk.upload_page(filled_page(1) * 4, offset=0, length=4 * PAGE)
    disk.resize_blob(2 * PAGE)
    assert (content(disk), ranges(disk)) == (filled_page(1) * 2, ([(0, 2)], []))
    disk.resize_blob(8 * PAGE)
    assert (content(disk), ranges(disk)) == (filled_page(1) * 2 + bytes(6 * PAGE), ([(0, 2)], []))


def test_sequence_numbers(disk):
    number = lambda: disk.get_blob_properties().page_blob_sequence_number  # noqa: E731
    disk.set_sequence_number(SequenceNumberAction.Update, "7")
    assert number() == 7
    disk.set_sequence_number(SequenceNumberAction.Max, "5")
    assert number() == 7
    disk.set_sequence_number(SequenceNumberAction.Increment)
    assert number() == 8
    disk.upload_page(filled_page(1), offset=0, length=PAGE, if_sequence_number_eq=8, if_sequence_number_lt=9)
    for unmet in ({"if_sequence_number_eq": 7}, {"if_sequence_number_lt": 8}, {"if_sequence_number_lte": 7}):
        with refused(412, "SequenceNumberConditionNotMet"):
            disk.upload_page(filled_page(2), offset=0, length=PAGE, **unmet)
    assert content(disk, offset=0, length=PAGE) == filled_page(1)


def test_an_upload_leaves_zeros_out(container):
    client = container_client(container.container_name, max_page_size=4 * KIB)
    data = os.urandom(4 * KIB) + bytes(8 * KIB) + os.urandom(4 * KIB)
    blob = client.upload_blob("disk", data, blob_type=BlobType.PAGEBLOB, max_concurrency=2)
    assert (content(blob), ranges(blob)) == (data, ([(0, 8), (24, 32)], []))


def test_the_largest_write(container):
    blob, data = container.get_blob_client("disk"), os.urandom(4 * MIB)
    blob.create_page_blob(6 * MIB)
    blob.upload_page(data, offset=MIB, length=4 * MIB, validate_content=True)
    assert content(blob) == bytes(MIB) + data + bytes(MIB)


def test_a_sparse_terabyte(blob):
    """Only what is written takes room."""
    size = 1024 * 1024 * MIB
    blob.create_page_blob(size)
    blob.upload_page(filled_page(1), offset=size - PAGE, length=PAGE)
    assert ranges(blob) == ([((size - PAGE) // PAGE, size // PAGE)], [])
    assert content(blob, offset=size - 2 * PAGE, length=2 * PAGE) == bytes(PAGE) + filled_page(1)


def test_beyond_the_end(disk):
    with refused(416, "InvalidPageRange"):
        disk.upload_page(filled_page(1), offset=64 * KIB, length=PAGE)


def test_the_largest_size(blob):
    largest = 8 * 1024 * 1024 * MIB
    with refused(400, "InvalidHeaderValue"):
        blob.create_page_blob(largest + PAGE)
    blob.create_page_blob(largest)
    assert blob.get_blob_properties().size == largest


def test_from_a_url(container, disk):
    disk.upload_page(filled_page(1) * 4, offset=0, length=4 * PAGE)
    other = container.get_blob_client("other")
    other.create_page_blob(8 * PAGE)
    other.upload_pages_from_url(signed(disk), offset=2 * PAGE, length=2 * PAGE, source_offset=PAGE)
    assert (content(other).strip(b"\0"), ranges(other)) == (filled_page(1) * 2, ([(2, 4)], []))


def test_only_in_a_page_blob(filled):
    with refused(409, "InvalidBlobType"):
        filled.upload_page(filled_page(1), offset=0, length=PAGE)
