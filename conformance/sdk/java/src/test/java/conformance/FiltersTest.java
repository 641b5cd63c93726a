package conformance;

import static conformance.Server.custom;
import static conformance.Server.entity;
import static conformance.Server.query;
import static conformance.Server.refusedAsText;
import static conformance.Server.rowKeys;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.azure.core.util.Context;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

class FiltersTest extends WithTable {
    /** Row i of the table described in filters.json. */
    private static TableEntity row(int i) {
        TableEntity row = entity(i < 5 ? "p0" : "p1", "r" + i,
            "Name", "s" + i,
            "Small", i,
            "Big", i * 10_000_000_000L,
            "Ratio", i + 0.5,
            "Even", i % 2 == 0,
            "When", OffsetDateTime.parse("2021-01-01T00:00:00Z").plusDays(i),
            "Uid", new UUID(0, i),
            "Blob", new byte[] { (byte) i });
        return i % 2 == 1 ? row.addProperty("Odd", "yes") : row;
    }

    @BeforeAll
    void fill() {
        for (int i = 9; i >= 0; i--) { // so that an answer in key order is not an answer in order of arrival
            table.createEntity(row(i));
        }
    }

    @SuppressWarnings("unchecked")
    private static Stream<Arguments> cases(String list, String expected) {
        List<Map<String, Object>> all = (List<Map<String, Object>>) Server.cases("filters.json").get(list);
        return all.stream().map(c -> arguments(c.get("filter"), c.get(expected)));
    }

    static Stream<Arguments> cases() {
        return cases("cases", "rows");
    }

    static Stream<Arguments> refusals() {
        return cases("refused", "status");
    }

    @ParameterizedTest
    @MethodSource("cases")
    void filter(String filter, String rows) {
        assertEquals(rows.chars().mapToObj(digit -> "r" + (char) digit).toList(), rowKeys(query(table, filter)), filter);
    }

    @ParameterizedTest
    @MethodSource("refusals")
    void filterIsRefused(String filter, int status) {
        refusedAsText(status, status == 501 ? "NotImplemented" : "InvalidInput", () -> query(table, filter));
    }

    @Test
    void selectGivesWhatIsNamed() {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter("RowKey eq 'r3'").setSelect(List.of("Name", "Small"));
        List<TableEntity> found = table.listEntities(options, null, Context.NONE).stream().toList();
        assertEquals(List.of(Map.of("Name", "s3", "Small", 3)), found.stream().map(Server::custom).toList());
    }

    @Test
    void selectOfAMissingPropertyIsNoError() {
        ListEntitiesOptions options = new ListEntitiesOptions().setFilter("RowKey le 'r1'").setSelect(List.of("Odd"));
        List<TableEntity> found = table.listEntities(options, null, Context.NONE).stream().toList();
        assertEquals(null, custom(found.get(0)).get("Odd"));
        assertEquals("yes", custom(found.get(1)).get("Odd"));
    }
}
