package conformance;

import static conformance.Server.ENDPOINT;
import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.quoted;
import static conformance.Server.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.models.ListTablesOptions;
import com.azure.data.tables.models.TableItem;
import java.util.Comparator;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.CsvSource;

class TablesTest extends WithTable {
    private static List<String> names(Stream<TableItem> tables) {
        return tables.map(TableItem::getName).toList();
    }

    private List<String> listed(ListTablesOptions options) {
        return names(service.listTables(options, null, Context.NONE).stream());
    }

    @Test
    void createExistingIsRefused() {
        refused(409, "TableAlreadyExists", () -> service.createTable(table.getTableName()));
        refused(409, "TableAlreadyExists", () -> service.createTable(table.getTableName().toUpperCase()));
    }

    @Test
    void createIfNotExistsKeepsWhatIsThere() {
        table.createEntity(entity("kept", "r"));
        service.createTableIfNotExists(table.getTableName());
        assertEquals(1, inPartition(table, "kept").size());
    }

    @Test
    void namesIgnoreCase() {
        table.createEntity(entity("case", "r"));
        assertEquals(1, inPartition(service.getTableClient(table.getTableName().toUpperCase()), "case").size());
    }

    @Test
    void deleteRemovesTheTableAndItsEntities() {
        TableClient doomed = service.createTableIfNotExists(fresh());
        doomed.createEntity(entity("p", "r"));
        doomed.deleteTable();
        assertEquals(List.of(), listed(new ListTablesOptions().setFilter("TableName eq " + quoted(doomed.getTableName()))));
        doomed.createTable();
        assertEquals(0, doomed.listEntities().stream().count());
        doomed.deleteTable();
    }

    @Test
    void deleteMissingIs404WhichTheSdkForgives() {
        assertEquals(404, service.deleteTableWithResponse(fresh(), null, Context.NONE).getStatusCode());
    }

    @Test
    void listing() {
        String prefix = fresh();
        List<String> three = List.of(prefix + "a", prefix + "b", prefix + "c");
        three.forEach(service::createTable);
        try {
            List<String> all = names(service.listTables().stream());
            assertEquals(three, all.stream().filter(three::contains).toList());
            assertEquals(all.stream().sorted(Comparator.comparing(String::toLowerCase)).toList(), all);
            assertEquals(three.subList(1, 2), listed(new ListTablesOptions().setFilter("TableName eq " + quoted(three.get(1)))));

            ListTablesOptions byTwo = new ListTablesOptions().setTop(2)
                .setFilter("TableName ge " + quoted(prefix) + " and TableName lt " + quoted(prefix + "z"));
            PagedResponse<TableItem> first = service.listTables(byTwo, null, Context.NONE).iterableByPage().iterator().next();
            assertEquals(three.subList(0, 2), names(first.getValue().stream()));

            TableServiceClient other = Server.service(ENDPOINT, Server.KEY);
            Stream<PagedResponse<TableItem>> rest =
                other.listTables(byTwo, null, Context.NONE).streamByPage(first.getContinuationToken());
            assertEquals(three.subList(2, 3), names(rest.flatMap(page -> page.getValue().stream())));
        } finally {
            three.forEach(service::deleteTable);
        }
    }

    @ParameterizedTest
    @CsvSource({
        "ab, OutOfRangeInput",
        "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa, OutOfRangeInput",
        "1abc, InvalidResourceName",
        "a-b, InvalidResourceName",
        "tablé, InvalidResourceName",
        "tables, InvalidInput",
    })
    void malformedNamesAreRefused(String name, String code) {
        refused(400, code, () -> service.createTable(name));
        assertTrue(names(service.listTables().stream()).stream().noneMatch(name::equals));
    }
}
