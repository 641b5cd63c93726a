package conformance;

import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.query;
import static conformance.Server.quoted;
import static conformance.Server.refused;
import static conformance.Server.rowKeys;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.List;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class KeysTest extends WithTable {
    @SuppressWarnings("unchecked")
    static List<String> legal() {
        return (List<String>) Server.cases("keys.json").get("legal");
    }

    @SuppressWarnings("unchecked")
    static List<String> forbidden() {
        return (List<String>) Server.cases("keys.json").get("forbidden");
    }

    @ParameterizedTest
    @MethodSource("legal")
    void legalKey(String key) {
        table.createEntity(entity(key, key, "Turn", "insert"));
        TableEntity found = table.getEntity(key, key);
        assertEquals(List.of(key, key, "insert"), List.of(found.getPartitionKey(), found.getRowKey(), found.getProperty("Turn")));

        table.upsertEntity(entity(key, key, "Turn", "upsert"));
        List<TableEntity> listed = query(table, "PartitionKey eq " + quoted(key) + " and RowKey eq " + quoted(key));
        assertEquals(List.of(key), rowKeys(listed));
        assertEquals("upsert", listed.get(0).getProperty("Turn"));

        TableEntity third = entity(key, key, "Turn", "transaction");
        table.submitTransaction(List.of(new TableTransactionAction(TableTransactionActionType.UPDATE_MERGE, third)));
        assertEquals("transaction", table.getEntity(key, key).getProperty("Turn"));

        table.deleteEntity(key, key);
        refused(404, "ResourceNotFound", () -> table.getEntity(key, key));
    }

    @ParameterizedTest
    @MethodSource("forbidden")
    void forbiddenKeyIsRefused(String key) {
        refused(400, "OutOfRangeInput", () -> table.createEntity(entity(key, "r")));
        refused(400, "OutOfRangeInput", () -> table.createEntity(entity("p", key)));
    }

    @Test
    void keysSortByCodeUnit() {
        String p = fresh();
        // U+1F600 is D83D DE00, below U+FB01.
        List<String> keys = List.of("", " ", "'", "A", "Z", "a", "aa", "b", "é", "日", "😀", "ﬁ");
        for (int i = keys.size() - 1; i >= 0; i--) {
            table.createEntity(entity(p, keys.get(i)));
        }
        assertEquals(keys, rowKeys(inPartition(table, p)));
    }
}
