"""ETags: what a write returns, what a read shows, and what a stale one is refused."""

import pytest
from azure.core import MatchConditions
from azure.core.exceptions import ResourceModifiedError, ResourceNotFoundError
from azure.data.tables import UpdateMode

from conftest import code_of, entity

ONLY_IF_CURRENT = {"match_condition": MatchConditions.IfNotModified}
MODES = pytest.mark.parametrize("mode", UpdateMode)


@pytest.fixture
def twice_written(shared_table, partition):
    """The keys of an entity with value 2, its present etag and the one before it."""
    stale = shared_table.create_entity(entity(partition_key=partition, A=1))["etag"]
    current = shared_table.upsert_entity(entity(partition_key=partition, A=2))["etag"]
    return partition, current, stale


def test_etag_is_the_same_wherever_it_is_seen(shared_table, twice_written):
    partition, current, stale = twice_written
    listed = next(shared_table.query_entities("PartitionKey eq @p", parameters={"p": partition}))
    assert shared_table.get_entity(partition, "r").metadata["etag"] == current
    assert listed.metadata["etag"] == current
    assert current != stale


def test_etag_is_made_of_the_timestamp(shared_table, twice_written):
    partition, current, _ = twice_written
    stamp = shared_table.get_entity(partition, "r").metadata["timestamp"].tables_service_value
    assert current == "W/\"datetime'" + stamp.replace(":", "%3A") + "'\""


@MODES
def test_update_with_the_current_etag(shared_table, twice_written, mode):
    partition, current, _ = twice_written
    shared_table.update_entity(entity(partition_key=partition, A=3), mode=mode, etag=current, **ONLY_IF_CURRENT)
    assert shared_table.get_entity(partition, "r")["A"] == 3


@MODES
def test_update_with_a_stale_etag_is_refused(shared_table, twice_written, mode):
    partition, _, stale = twice_written
    with pytest.raises(ResourceModifiedError) as refused:
        shared_table.update_entity(entity(partition_key=partition, A=3), mode=mode, etag=stale, **ONLY_IF_CURRENT)
    assert (refused.value.status_code, code_of(refused.value)) == (412, "UpdateConditionNotSatisfied")
    assert shared_table.get_entity(partition, "r")["A"] == 2


def test_delete_with_a_stale_etag_is_refused(shared_table, twice_written):
    partition, current, stale = twice_written
    with pytest.raises(ResourceModifiedError) as refused:
        shared_table.delete_entity(partition, "r", etag=stale, **ONLY_IF_CURRENT)
    assert refused.value.status_code == 412
    assert shared_table.get_entity(partition, "r").metadata["etag"] == current


def test_delete_with_the_current_etag(shared_table, twice_written):
    partition, current, _ = twice_written
    shared_table.delete_entity(partition, "r", etag=current, **ONLY_IF_CURRENT)
    with pytest.raises(ResourceNotFoundError):
        shared_table.get_entity(partition, "r")


def test_unconditional_update_ignores_the_past(shared_table, twice_written):
    partition, _, _ = twice_written
    shared_table.update_entity(entity(partition_key=partition, A=3))
    assert shared_table.get_entity(partition, "r")["A"] == 3


@MODES
def test_any_etag_on_a_missing_entity_is_404(shared_table, partition, twice_written, mode):
    _, current, _ = twice_written
    missing = entity("missing", partition)
    for condition in {}, {"etag": current, **ONLY_IF_CURRENT}:
        with pytest.raises(ResourceNotFoundError) as refused:
            shared_table.update_entity(missing, mode=mode, **condition)
        assert code_of(refused.value) == "ResourceNotFound"
