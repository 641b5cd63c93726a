package conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.DELETE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_REPLACE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_MERGE;
import static com.azure.data.tables.models.TableTransactionActionType.UPSERT_REPLACE;
import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.rowKeys;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.models.TableTransactionResult;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class TransactionsTest extends WithTable {
    private static TableTransactionAction action(TableTransactionActionType type, TableEntity entity) {
        return new TableTransactionAction(type, entity);
    }

    /** Demands that the transaction fails with this code, blaming the action at this index. */
    private static void failed(TableClient table, String code, Integer index, List<TableTransactionAction> actions) {
        TableTransactionFailedException failure =
            assertThrows(TableTransactionFailedException.class, () -> table.submitTransaction(actions));
        assertEquals(code, failure.getValue().getErrorCode().toString());
        assertEquals(index, failure.getFailedTransactionActionIndex());
    }

    @Test
    void aHundredMixedOperations() {
        String p = fresh();
        table.submitTransaction(IntStream.range(0, 80).mapToObj(i -> action(CREATE, numbered(p, i, "Before"))).toList());
        List<TableTransactionAction> actions = IntStream.range(0, 100)
            .mapToObj(i -> action(typeOf(i), numbered(p, i, "After")))
            .toList();
        TableTransactionResult result = table.submitTransaction(actions);
        assertEquals(Collections.nCopies(100, 204),
            result.getTransactionActionResponses().stream().map(r -> r.getStatusCode()).toList());

        List<TableEntity> found = inPartition(table, p);
        assertEquals(IntStream.range(20, 100).mapToObj(i -> numbered(p, i, "").getRowKey()).toList(), rowKeys(found));
        for (int i = 20; i < 100; i++) {
            boolean merged = typeOf(i) == UPDATE_MERGE || typeOf(i) == UPSERT_MERGE && i < 80;
            Map<String, Object> expected = merged ? Map.of("Before", 1, "After", 1) : Map.of("After", 1);
            assertEquals(expected, Server.custom(found.get(i - 20)), "row " + i);
        }
    }

    private static TableEntity numbered(String partition, int i, String property) {
        return entity(partition, String.format("r%03d", i), property, 1);
    }

    private static TableTransactionActionType typeOf(int i) {
        return i < 20 ? DELETE
            : i < 35 ? UPDATE_REPLACE
            : i < 50 ? UPDATE_MERGE
            : i < 65 ? UPSERT_REPLACE
            : i < 90 ? UPSERT_MERGE
            : CREATE;
    }

    static Stream<Arguments> failures() {
        return Stream.of("EntityAlreadyExists", "ResourceNotFound", "UpdateConditionNotSatisfied", "PropertyValueTooLarge")
            .flatMap(code -> Stream.of(0, 2, 4).map(index -> arguments(code, index)));
    }

    @ParameterizedTest
    @MethodSource("failures")
    void oneFailureUndoesAllAndIsNamed(String code, int index) {
        String p = fresh();
        table.createEntity(entity(p, "existing"));
        TableEntity stale = table.getEntity(p, "existing");
        table.upsertEntity(entity(p, "existing"));
        List<TableTransactionAction> actions = new ArrayList<>();
        for (int i = 0; i < 4; i++) {
            actions.add(action(CREATE, entity(p, "new" + i)));
        }
        actions.add(index, switch (code) {
            case "EntityAlreadyExists" -> action(CREATE, entity(p, "existing"));
            case "ResourceNotFound" -> action(UPDATE_MERGE, entity(p, "missing"));
            case "UpdateConditionNotSatisfied" -> new TableTransactionAction(UPDATE_MERGE, stale, true);
            default -> action(UPSERT_MERGE, entity(p, "missing", "Text", "x".repeat(32769)));
        });
        failed(table, code, index, actions);
        assertEquals(List.of("existing"), rowKeys(inPartition(table, p)));
    }

    @Test
    void singleOperation() {
        String p = fresh();
        table.submitTransaction(List.of(action(CREATE, entity(p, "r"))));
        assertEquals(1, inPartition(table, p).size());
    }

    /** A change set of one has no index in its message, so the SDK finds none. */
    @Test
    void singleFailingOperation() {
        failed(table, "ResourceNotFound", null, List.of(action(UPDATE_MERGE, entity(fresh(), "r"))));
    }

    @Test
    void aRowMayAppearOnce() {
        String p = fresh();
        failed(table, "InvalidDuplicateRow", 2, Stream.of("a", "b", "a").map(r -> action(UPSERT_MERGE, entity(p, r))).toList());
        assertEquals(0, inPartition(table, p).size());
    }

    @Test
    void onePartitionOnly() {
        String p = fresh();
        failed(table, "CommandsInBatchActOnDifferentPartitions", 1,
            List.of(action(UPSERT_MERGE, entity(p, "a")), action(UPSERT_MERGE, entity(p + "x", "a"))));
        assertEquals(0, inPartition(table, p).size());
    }

    @Test
    void moreThanAHundredOperationsAreRefused() {
        String p = fresh();
        failed(table, "InvalidInput", 99,
            IntStream.range(0, 101).mapToObj(i -> action(UPSERT_MERGE, entity(p, "r" + i))).toList());
        assertEquals(0, inPartition(table, p).size());
    }

    @Test
    void missingTable() {
        failed(service.getTableClient(fresh()), "TableNotFound", 0,
            List.of(action(UPSERT_MERGE, entity("p", "a")), action(UPSERT_MERGE, entity("p", "b"))));
    }
}
