package conformance;

import static conformance.Server.custom;
import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.query;
import static conformance.Server.quoted;
import static conformance.Server.refused;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.azure.core.util.Context;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import java.time.OffsetDateTime;
import java.util.List;
import java.util.Map;
import java.util.UUID;
import java.util.stream.Stream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.EnumSource;
import org.junit.jupiter.params.provider.MethodSource;
import org.junit.jupiter.params.provider.ValueSource;

class EntitiesTest extends WithTable {
    static Stream<Object> values() {
        return Stream.of(
            "text", "", "  \t\r\n ", "'\"\\/<&>", "Grüße, Ελλάδα, 日本語", "😀👩‍👩‍👧", "2021-01-01T00:00:00Z", "42",
            true, false,
            42, Integer.MIN_VALUE, Integer.MAX_VALUE,
            42L, Long.MIN_VALUE, Long.MAX_VALUE,
            3.25, 20.0, 0.0, 1e300, Double.MIN_VALUE, Double.MAX_VALUE, 0.1 + 0.2, 8589934592.0,
            OffsetDateTime.parse("2021-03-04T05:06:07Z"), OffsetDateTime.parse("2021-03-04T05:06:07.120Z"),
            OffsetDateTime.parse("2021-03-04T05:06:07.1234567Z"), OffsetDateTime.parse("1601-01-01T00:00:00Z"),
            OffsetDateTime.parse("9999-12-31T23:59:59.9999999Z"),
            UUID.fromString("0f8fad5b-d9cb-469f-a165-70867728950e"));
    }

    /** Equality includes the class, so a whole Double that came back an Integer fails here. */
    @ParameterizedTest
    @MethodSource("values")
    void valueRoundTrips(Object value) {
        String p = fresh();
        table.createEntity(entity(p, "r", "Value", value));
        assertEquals(value, table.getEntity(p, "r").getProperty("Value"));
        assertEquals(value, inPartition(table, p).get(0).getProperty("Value"));
    }

    /** The SDK writes these as strings and leaves it to the caller to say what they are. */
    @ParameterizedTest
    @ValueSource(doubles = { Double.NaN, Double.POSITIVE_INFINITY, Double.NEGATIVE_INFINITY })
    void annotatedDoubleRoundTrips(double value) {
        String p = fresh();
        table.createEntity(entity(p, "r", "Value", value, "Value@odata.type", "Edm.Double"));
        assertEquals(value, table.getEntity(p, "r").getProperty("Value"));
    }

    @ParameterizedTest
    @MethodSource("binaries")
    void binaryRoundTrips(byte[] value) {
        String p = fresh();
        table.createEntity(entity(p, "r", "Value", value));
        assertArrayEquals(value, (byte[]) table.getEntity(p, "r").getProperty("Value"));
    }

    static Stream<byte[]> binaries() {
        byte[] everyByte = new byte[256];
        for (int i = 0; i < 256; i++) {
            everyByte[i] = (byte) i;
        }
        return Stream.of(everyByte, new byte[0]);
    }

    @Test
    void offsetBecomesUtc() {
        String p = fresh();
        table.createEntity(entity(p, "r", "Value", OffsetDateTime.parse("2021-03-04T05:06:07+02:00")));
        assertEquals(OffsetDateTime.parse("2021-03-04T03:06:07Z"), table.getEntity(p, "r").getProperty("Value"));
    }

    @Test
    void nullIsNoProperty() {
        String p = fresh();
        table.createEntity(entity(p, "r", "Kept", 1, "Gone", null));
        assertEquals(Map.of("Kept", 1), custom(table.getEntity(p, "r")));
    }

    @Test
    void propertyNamesKeepCaseAndScript() {
        String p = fresh();
        table.createEntity(entity(p, "r", "name", 1, "Name", 2, "_x", 3, "Größe", 4, "名前", 5, "etag", 6));
        Map<String, Object> expected = Map.of("name", 1, "Name", 2, "_x", 3, "Größe", 4, "名前", 5, "etag", 6);
        assertEquals(expected, custom(table.getEntity(p, "r")));
    }

    @Test
    void insertExistingIsRefusedAndChangesNothing() {
        String p = fresh();
        table.createEntity(entity(p, "r", "A", 1));
        refused(409, "EntityAlreadyExists", () -> table.createEntity(entity(p, "r", "A", 2)));
        assertEquals(1, table.getEntity(p, "r").getProperty("A"));
    }

    /** How each write treats the entity {A: 1, B: 1} when it sends {B: 2, C: 2}. */
    static Stream<Arguments> writes() {
        return Stream.of(
            arguments(TableEntityUpdateMode.REPLACE, Map.of("B", 2, "C", 2)),
            arguments(TableEntityUpdateMode.MERGE, Map.of("A", 1, "B", 2, "C", 2)));
    }

    @ParameterizedTest
    @MethodSource("writes")
    void writeOverAnExistingEntity(TableEntityUpdateMode mode, Map<String, Object> expected) {
        for (boolean upsert : List.of(true, false)) {
            String p = fresh();
            table.createEntity(entity(p, "r", "A", 1, "B", 1));
            TableEntity sent = entity(p, "r", "B", 2, "C", 2);
            if (upsert) {
                table.upsertEntityWithResponse(sent, mode, null, Context.NONE);
            } else {
                table.updateEntity(sent, mode);
            }
            assertEquals(expected, custom(table.getEntity(p, "r")));
        }
    }

    @ParameterizedTest
    @EnumSource
    void upsertCreatesAndUpdateDoesNot(TableEntityUpdateMode mode) {
        String p = fresh();
        refused(404, "ResourceNotFound", () -> table.updateEntity(entity(p, "r", "A", 1), mode));
        table.upsertEntityWithResponse(entity(p, "r", "A", 1), mode, null, Context.NONE);
        assertEquals(Map.of("A", 1), custom(table.getEntity(p, "r")));
    }

    @Test
    void deleteRemoves() {
        String p = fresh();
        table.createEntity(entity(p, "r"));
        table.deleteEntity(p, "r");
        refused(404, "ResourceNotFound", () -> table.getEntity(p, "r"));
    }

    @Test
    void deleteMissingIs404WhichTheSdkForgives() {
        assertEquals(404, table.deleteEntityWithResponse(entity(fresh(), "r"), false, null, Context.NONE).getStatusCode());
    }

    @Test
    void getWithSelect() {
        String p = fresh();
        table.createEntity(entity(p, "r", "A", 1, "B", 2));
        List<String> selected = List.of("A", "PartitionKey", "RowKey");
        TableEntity found = table.getEntityWithResponse(p, "r", selected, null, Context.NONE).getValue();
        assertEquals(1, found.getProperty("A"));
        assertNull(found.getProperty("B"));
    }

    @Test
    void wholeDoublesAreFoundAsDoubles() {
        String p = fresh();
        table.createEntity(entity(p, "double", "Value", 20.0));
        table.createEntity(entity(p, "int", "Value", 20));
        assertEquals(List.of("double"), Server.rowKeys(query(table, "PartitionKey eq " + quoted(p) + " and Value eq 20.0")));
    }
}
