package conformance;

import static conformance.Server.ENDPOINT;
import static conformance.Server.KEY;
import static conformance.Server.fresh;
import static conformance.Server.refusedAsText;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.params.provider.Arguments.arguments;

import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableServiceCorsRule;
import com.azure.data.tables.models.TableServiceGeoReplication;
import com.azure.data.tables.models.TableServiceGeoReplicationStatus;
import com.azure.data.tables.models.TableServiceLogging;
import com.azure.data.tables.models.TableServiceMetrics;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableServiceRetentionPolicy;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.xml.XmlSerializable;
import com.azure.xml.XmlWriter;
import java.io.StringWriter;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.Collections;
import java.util.List;
import java.util.function.UnaryOperator;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import javax.xml.stream.XMLStreamException;
import org.junit.jupiter.api.AfterEach;
import org.junit.jupiter.api.BeforeEach;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.Arguments;
import org.junit.jupiter.params.provider.MethodSource;

/** Stored access policies as they are kept, service properties and service statistics. */
class ServiceTest extends WithTable {
    private TableServiceProperties before;

    /** Service properties are the account's: every test puts them back. */
    @BeforeEach
    void remember() {
        before = current();
    }

    @AfterEach
    void restore() {
        service.setProperties(before);
    }

    /** The SDK reads an empty list as none at all, which would not put it back. */
    private TableServiceProperties current() {
        TableServiceProperties found = service.getProperties();
        return found.getCorsRules() == null ? found.setCorsRules(List.of()) : found;
    }

    /** The SDK's models have no equals; their XML has. */
    private static String xml(XmlSerializable<?> model) {
        StringWriter text = new StringWriter();
        try (XmlWriter writer = XmlWriter.toWriter(text)) {
            model.toXml(writer).flush();
        } catch (XMLStreamException e) {
            throw new IllegalStateException(e);
        }
        return text.toString();
    }

    private static List<String> xml(List<TableSignedIdentifier> identifiers) {
        return Stream.ofNullable(identifiers).flatMap(List::stream).map(ServiceTest::xml).toList();
    }

    private static TableAccessPolicy full() {
        return new TableAccessPolicy().setPermissions("raud")
            .setStartsOn(OffsetDateTime.parse("2030-01-02T03:04:05Z"))
            .setExpiresOn(OffsetDateTime.parse("2031-01-02T03:04:05Z"));
    }

    private static List<TableSignedIdentifier> identifiers(int count, TableAccessPolicy policy) {
        return IntStream.range(0, count).mapToObj(i -> new TableSignedIdentifier("id" + i).setAccessPolicy(policy)).toList();
    }

    static Stream<Arguments> policies() {
        return Stream.of(
            arguments("none", List.of()),
            arguments("one", identifiers(1, full())),
            arguments("five", identifiers(5, full())),
            arguments("only an id", identifiers(1, null)),
            arguments("permission", identifiers(1, new TableAccessPolicy().setPermissions("r"))),
            arguments("expiry", identifiers(1, new TableAccessPolicy().setExpiresOn(full().getExpiresOn()))),
            arguments("other letters", List.of(new TableSignedIdentifier("o'clock <é> & 日本 😀").setAccessPolicy(full()))));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("policies")
    void policiesRoundTrip(String name, List<TableSignedIdentifier> given) {
        table.setAccessPolicies(identifiers(2, full()));
        table.setAccessPolicies(given);
        assertEquals(xml(given), xml(table.getAccessPolicies().getIdentifiers()));
    }

    static Stream<Arguments> malformedPolicies() {
        return Stream.of(
            arguments("six", identifiers(6, full())),
            arguments("long id", List.of(new TableSignedIdentifier("x".repeat(65)).setAccessPolicy(full()))),
            arguments("unknown permission", identifiers(1, new TableAccessPolicy().setPermissions("rx"))));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("malformedPolicies")
    void malformedPoliciesAreRefused(String name, List<TableSignedIdentifier> given) {
        table.setAccessPolicies(identifiers(2, full()));
        refusedAsText(400, "InvalidXmlDocument", () -> table.setAccessPolicies(given));
        assertEquals(xml(identifiers(2, full())), xml(table.getAccessPolicies().getIdentifiers()));
    }

    @Test
    void policiesOfAMissingTable() {
        refusedAsText(404, "TableNotFound", () -> service.getTableClient(fresh()).getAccessPolicies());
    }

    private static TableServiceRetentionPolicy days(int count) {
        return new TableServiceRetentionPolicy().setEnabled(true).setDaysToRetain(count);
    }

    private static TableServiceRetentionPolicy off() {
        return new TableServiceRetentionPolicy().setEnabled(false);
    }

    private static TableServiceLogging logging(TableServiceRetentionPolicy retention) {
        return new TableServiceLogging().setAnalyticsVersion("1.0").setReadLogged(true).setDeleteLogged(true).setRetentionPolicy(retention);
    }

    private static TableServiceMetrics metrics(TableServiceRetentionPolicy retention) {
        return new TableServiceMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(retention);
    }

    private static List<TableServiceCorsRule> rules(int count, String origins, String methods) {
        return Collections.nCopies(count, new TableServiceCorsRule().setAllowedOrigins(origins).setAllowedMethods(methods)
            .setAllowedHeaders("accept,x-ms-*").setExposedHeaders("etag").setMaxAgeInSeconds(200));
    }

    private static TableServiceProperties base() {
        return new TableServiceProperties().setLogging(logging(days(1))).setHourMetrics(metrics(days(2)))
            .setMinuteMetrics(metrics(days(3))).setCorsRules(rules(1, "*", "GET"));
    }

    private static Arguments change(String name, UnaryOperator<TableServiceProperties> change) {
        return arguments(name, change);
    }

    static Stream<Arguments> properties() {
        return Stream.of(
            change("logging", p -> p.setLogging(logging(off()))),
            change("hour metrics", p -> p.setHourMetrics(metrics(days(365)))),
            change("no hour metrics", p ->
                p.setHourMetrics(new TableServiceMetrics().setVersion("1.0").setEnabled(false).setRetentionPolicy(off()))),
            change("minute metrics", p -> p.setMinuteMetrics(metrics(off()).setIncludeApis(false))),
            change("five rules", p -> p.setCorsRules(rules(5, "http://a.example,http://b.example", "GET,MERGE"))),
            change("no rules", p -> p.setCorsRules(List.of())));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("properties")
    void propertiesRoundTripAndTheOthersAreKept(String name, UnaryOperator<TableServiceProperties> change) {
        service.setProperties(base());
        service.setProperties(change.apply(new TableServiceProperties()));
        assertEquals(xml(change.apply(base())), xml(current()));
    }

    static Stream<Arguments> malformedProperties() {
        return Stream.of(
            change("366 days of logging", p -> p.setLogging(logging(days(366)))),
            change("366 days of metrics", p -> p.setHourMetrics(metrics(days(366)))),
            change("no days", p -> p.setMinuteMetrics(metrics(new TableServiceRetentionPolicy().setEnabled(true)))),
            change("version", p -> p.setLogging(logging(days(1)).setAnalyticsVersion("3.0"))),
            change("six rules", p -> p.setCorsRules(rules(6, "*", "GET"))),
            change("no origins", p -> p.setCorsRules(rules(1, "", "GET"))),
            change("unknown method", p -> p.setCorsRules(rules(1, "*", "FETCH"))));
    }

    @ParameterizedTest(name = "{0}")
    @MethodSource("malformedProperties")
    void malformedPropertiesAreRefused(String name, UnaryOperator<TableServiceProperties> change) {
        refusedAsText(400, "InvalidXmlDocument", () -> service.setProperties(change.apply(new TableServiceProperties())));
        assertEquals(xml(before), xml(current()));
    }

    @Test
    void statistics() {
        TableServiceGeoReplication found = Server.service(ENDPOINT + "-secondary", KEY).getStatistics().getGeoReplication();
        assertEquals(TableServiceGeoReplicationStatus.LIVE, found.getStatus());
        Duration late = Duration.between(found.getLastSyncTime(), OffsetDateTime.now());
        assertTrue(!late.isNegative() && late.toMinutes() < 10, late.toString());
    }

    @Test
    void noStatisticsAtThePrimary() {
        refusedAsText(400, "", service::getStatistics);
    }
}
