package conformance;

import static conformance.Server.fresh;
import static conformance.Server.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.azure.data.tables.models.TableEntity;
import java.time.OffsetDateTime;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** The last size that fits and the first that does not. */
class LimitsTest extends WithTable {
    private static final String KIB_64 = "x".repeat(32768);

    private static Map<String, Object> many(int count, Object value) {
        Map<String, Object> all = new HashMap<>();
        for (int i = 0; i < count; i++) {
            all.put("P" + i, value);
        }
        return all;
    }

    static Stream<Arguments> fitting() {
        return Stream.of(
            arguments("text of 64 KiB", Map.of("Text", KIB_64)),
            arguments("text of 64 KiB in surrogate pairs", Map.of("Text", "😀".repeat(16384))),
            arguments("binary of 64 KiB", Map.of("Blob", new byte[65536])),
            arguments("252 properties", many(252, 1)),
            arguments("a name of 255 characters", Map.of("N".repeat(255), 1)),
            arguments("just under 1 MiB", many(15, KIB_64)));
    }

    static Stream<Arguments> excessive() {
        return Stream.of(
            arguments("text above 64 KiB", Map.of("Text", KIB_64 + "x"), "PropertyValueTooLarge"),
            arguments("binary above 64 KiB", Map.of("Blob", new byte[65537]), "PropertyValueTooLarge"),
            arguments("253 properties", many(253, 1), "TooManyProperties"),
            arguments("a name of 256 characters", Map.of("N".repeat(256), 1), "PropertyNameTooLong"),
            arguments("above 1 MiB", many(16, KIB_64), "EntityTooLarge"),
            arguments("a date before 1601", Map.of("When", OffsetDateTime.parse("1600-12-31T23:59:59Z")), "OutOfRangeInput"));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("fitting")
    void fits(String name, Map<String, Object> properties) {
        String p = fresh();
        table.createEntity(with(p, properties));
        assertEquals(properties.keySet(), Server.custom(table.getEntity(p, "r")).keySet());
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("excessive")
    void isRefused(String name, Map<String, Object> properties, String code) {
        refused(400, code, () -> table.createEntity(with(fresh(), properties)));
        refused(400, code, () -> table.upsertEntity(with(fresh(), properties)));
    }

    private static TableEntity with(String partition, Map<String, Object> properties) {
        TableEntity entity = new TableEntity(partition, "r");
        properties.forEach(entity::addProperty);
        return entity;
    }
}
