package conformance;

import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNotEquals;

import com.azure.core.util.Context;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.EnumSource;

class ETagsTest extends WithTable {
    /** An entity as it was read with A = 1; since then it was written with A = 2. */
    private TableEntity stale() {
        String p = fresh();
        table.createEntity(entity(p, "r", "A", 1));
        TableEntity read = table.getEntity(p, "r");
        table.upsertEntity(entity(p, "r", "A", 2));
        return read;
    }

    private TableEntity current(TableEntity of) {
        return table.getEntity(of.getPartitionKey(), of.getRowKey());
    }

    private void update(TableEntity entity, TableEntityUpdateMode mode) {
        table.updateEntityWithResponse(entity.addProperty("A", 3), mode, true, null, Context.NONE);
    }

    @Test
    void etagIsTheSameWhereverItIsSeen() {
        String p = fresh();
        table.createEntity(entity(p, "r"));
        String inserted = table.getEntity(p, "r").getETag();
        assertEquals(inserted, inPartition(table, p).get(0).getETag());
        table.upsertEntity(entity(p, "r"));
        assertNotEquals(inserted, table.getEntity(p, "r").getETag());
    }

    @ParameterizedTest
    @EnumSource
    void updateOfWhatHasChangedIsRefused(TableEntityUpdateMode mode) {
        TableEntity stale = stale();
        refused(412, "UpdateConditionNotSatisfied", () -> update(stale, mode));
        assertEquals(2, current(stale).getProperty("A"));
    }

    @ParameterizedTest
    @EnumSource
    void updateOfWhatHasNotChanged(TableEntityUpdateMode mode) {
        TableEntity current = current(stale());
        update(current, mode);
        assertEquals(3, current(current).getProperty("A"));
    }

    @Test
    void deleteOfWhatHasChangedIsRefused() {
        TableEntity stale = stale();
        refused(412, "UpdateConditionNotSatisfied", () -> table.deleteEntityWithResponse(stale, true, null, Context.NONE));
        assertEquals(2, current(stale).getProperty("A"));
    }

    @Test
    void deleteOfWhatHasNotChanged() {
        TableEntity current = current(stale());
        table.deleteEntityWithResponse(current, true, null, Context.NONE);
        refused(404, "ResourceNotFound", () -> current(current));
    }

    @ParameterizedTest
    @EnumSource
    void anyETagOnAMissingEntityIs404(TableEntityUpdateMode mode) {
        TableEntity gone = current(stale());
        table.deleteEntity(gone.getPartitionKey(), gone.getRowKey());
        refused(404, "ResourceNotFound", () -> update(gone, mode));
        refused(404, "ResourceNotFound", () -> table.updateEntity(gone, mode));
    }
}
