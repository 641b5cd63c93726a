package conformance;

import static com.azure.data.tables.models.TableTransactionActionType.CREATE;
import static com.azure.data.tables.models.TableTransactionActionType.UPDATE_MERGE;
import static conformance.Server.ENDPOINT;
import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.refused;
import static conformance.Server.refusedAsText;
import static conformance.Server.rowKeys;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.azure.core.credential.AzureSasCredential;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableAccessPolicy;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableEntityUpdateMode;
import com.azure.data.tables.models.TableServiceProperties;
import com.azure.data.tables.models.TableSignedIdentifier;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionFailedException;
import com.azure.data.tables.sas.TableAccountSasPermission;
import com.azure.data.tables.sas.TableAccountSasResourceType;
import com.azure.data.tables.sas.TableAccountSasService;
import com.azure.data.tables.sas.TableAccountSasSignatureValues;
import com.azure.data.tables.sas.TableSasIpRange;
import com.azure.data.tables.sas.TableSasPermission;
import com.azure.data.tables.sas.TableSasProtocol;
import com.azure.data.tables.sas.TableSasSignatureValues;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.time.ZoneOffset;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.function.UnaryOperator;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.api.condition.DisabledIfEnvironmentVariable;

/** Shared access signatures: the SDK's tokens do what they grant, and nothing else. */
class SasTest {
    private final TableServiceClient service = Server.service();

    private static OffsetDateTime hours(double count) {
        return OffsetDateTime.now(ZoneOffset.UTC).plusSeconds((long) (count * 3600));
    }

    private static TableServiceClient serviceWith(String token) {
        return new TableServiceClientBuilder().endpoint(ENDPOINT)
            .credential(new AzureSasCredential(token))
            .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ZERO)))
            .buildClient();
    }

    private static TableSasSignatureValues granting(String letters) {
        return new TableSasSignatureValues(hours(1), TableSasPermission.parse(letters));
    }

    private static TableClient holder(TableClient table, TableSasSignatureValues values) {
        return serviceWith(table.generateSas(values)).getTableClient(table.getTableName());
    }

    private TableServiceClient accountHolder(String types, String letters, String services) {
        return serviceWith(service.generateAccountSas(new TableAccountSasSignatureValues(hours(1),
            TableAccountSasPermission.parse(letters), TableAccountSasService.parse(services),
            TableAccountSasResourceType.parse(types))));
    }

    private TableServiceClient accountHolder(String types, String letters) {
        return accountHolder(types, letters, "t");
    }

    /** A test with a table of its own, of one row. */
    private DynamicTest withRow(String name, Consumer<TableClient> act) {
        return dynamicTest(name, () -> {
            TableClient table = service.createTable(fresh());
            try {
                table.createEntity(entity("p", "r", "A", 1));
                act.accept(table);
            } finally {
                service.deleteTable(table.getTableName());
            }
        });
    }

    private static List<TableEntity> all(TableClient table) {
        return table.listEntities().stream().toList();
    }

    private static void read(TableClient table) {
        table.getEntity("p", "r");
    }

    private static String without(String letters, String given) {
        return letters.replaceAll("[" + given + "]", "");
    }

    private record Operation(String name, String needs, Consumer<TableClient> act) {
    }

    private static final List<Operation> OPERATIONS = List.of(
        new Operation("get", "r", SasTest::read),
        new Operation("insert", "a", t -> t.createEntity(entity("p", "rnew"))),
        new Operation("merge", "u", t -> t.updateEntity(entity("p", "r"))),
        new Operation("replace", "u", t -> t.updateEntity(entity("p", "r"), TableEntityUpdateMode.REPLACE)),
        new Operation("insert or merge", "au", t -> t.upsertEntity(entity("p", "r"))),
        new Operation("insert or replace", "au",
            t -> t.upsertEntityWithResponse(entity("p", "r"), TableEntityUpdateMode.REPLACE, null, Context.NONE)),
        new Operation("delete", "d", t -> t.deleteEntity("p", "r")));

    @TestFactory
    Stream<DynamicTest> permissionSuffices() {
        return OPERATIONS.stream().map(o -> withRow(o.name, table -> o.act.accept(holder(table, granting(o.needs)))));
    }

    @TestFactory
    Stream<DynamicTest> permissionIsNeeded() {
        return OPERATIONS.stream().flatMap(o -> o.needs.chars().mapToObj(Character::toString)
            .map(letter -> withRow(o.name + " needs " + letter, table -> refused(403, "AuthorizationPermissionMismatch",
                () -> o.act.accept(holder(table, granting(without("raud", letter))))))));
    }

    @TestFactory
    Stream<DynamicTest> queries() {
        return Stream.of(
            withRow("with r", table -> assertEquals(1, all(holder(table, granting("r"))).size())),
            withRow("without r", table ->
                refusedAsText(403, "AuthorizationPermissionMismatch", () -> all(holder(table, granting("aud"))))));
    }

    private static TableSasSignatureValues between(TableSasSignatureValues values, Map<String, Object> range) {
        return values.setStartPartitionKey((String) range.get("startPartitionKey"))
            .setStartRowKey((String) range.get("startRowKey"))
            .setEndPartitionKey((String) range.get("endPartitionKey"))
            .setEndRowKey((String) range.get("endRowKey"));
    }

    /** Of the ranges, those that name rows: this SDK has no others. */
    @TestFactory
    @SuppressWarnings("unchecked")
    Stream<DynamicTest> ranges() {
        Map<String, Object> cases = Server.cases("ranges.json");
        List<List<String>> rows = (List<List<String>>) cases.get("rows");
        return ((Map<String, Map<String, Object>>) cases.get("ranges")).entrySet().stream()
            .filter(c -> c.getValue().containsKey("startPartitionKey") == c.getValue().containsKey("startRowKey"))
            .filter(c -> c.getValue().containsKey("endPartitionKey") == c.getValue().containsKey("endRowKey"))
            .map(c -> withRow(c.getKey(), table -> {
                table.deleteEntity("p", "r");
                rows.forEach(row -> table.createEntity(entity(row.get(0), row.get(1))));
                List<List<String>> inside = (List<List<String>>) c.getValue().get("inside");
                TableClient client = holder(table, between(granting("r"), c.getValue()));
                assertEquals(inside, all(client).stream().map(e -> List.of(e.getPartitionKey(), e.getRowKey())).toList());
                for (List<String> row : rows) {
                    if (inside.contains(row)) {
                        assertEquals(row.get(1), client.getEntity(row.get(0), row.get(1)).getRowKey());
                    } else {
                        refused(404, "ResourceNotFound", () -> client.getEntity(row.get(0), row.get(1)));
                    }
                }
            }));
    }

    @TestFactory
    Stream<DynamicTest> writesKeepToTheRange() {
        Map<String, Object> below = Map.of("endPartitionKey", "p", "endRowKey", "q");
        Map<String, Object> above = Map.of("startPartitionKey", "p", "startRowKey", "s");
        Map<String, Object> around = Map.of("startPartitionKey", "p", "startRowKey", "r", "endPartitionKey", "p", "endRowKey", "s");
        return OPERATIONS.stream().filter(o -> !o.needs.equals("r")).flatMap(o -> Stream.concat(
            Stream.of(withRow(o.name + " inside", table -> o.act.accept(holder(table, between(granting("raud"), around))))),
            Stream.of(below, above).map(range -> withRow(o.name + " outside " + range, table -> {
                refused(403, "AuthorizationFailure", () -> o.act.accept(holder(table, between(granting("raud"), range))));
                assertEquals(List.of(1), all(table).stream().map(e -> e.getProperty("A")).toList());
            }))));
    }

    @TestFactory
    Stream<DynamicTest> times() {
        return Stream.of(
            withRow("started", table -> read(holder(table, granting("r").setStartTime(hours(-1))))),
            withRow("not yet", table -> refused(403, "AuthenticationFailed",
                () -> read(holder(table, granting("r").setStartTime(hours(0.5)))))),
            withRow("expired", table -> refused(403, "AuthenticationFailed",
                () -> read(holder(table, granting("r").setExpiryTime(hours(-0.01)))))));
    }

    @TestFactory
    Stream<DynamicTest> addresses() {
        return Stream.of(
            withRow("here", table ->
                read(holder(table, granting("r").setSasIpRange(TableSasIpRange.parse("0.0.0.0-255.255.255.255"))))),
            withRow("elsewhere", table -> refused(403, "AuthorizationSourceIPMismatch",
                () -> read(holder(table, granting("r").setSasIpRange(TableSasIpRange.parse("203.0.113.1")))))));
    }

    @TestFactory
    @DisabledIfEnvironmentVariable(named = "PARTITA_ENDPOINT", matches = "https:.*")
    Stream<DynamicTest> protocols() {
        return Stream.of(
            withRow("both", table -> read(holder(table, granting("r").setProtocol(TableSasProtocol.HTTPS_HTTP)))),
            withRow("secure", table -> refused(403, "AuthorizationProtocolMismatch",
                () -> read(holder(table, granting("r").setProtocol(TableSasProtocol.HTTPS_ONLY))))));
    }

    @TestFactory
    Stream<DynamicTest> tampered() {
        Map<String, UnaryOperator<String>> changes = Map.of(
            "permission", token -> token.replace("sp=r", "sp=raud"),
            "expiry", token -> token.replaceAll("se=[^&]*", "se=2099-01-01"),
            "range", token -> token + "&spk=a",
            "signature", token -> token.replaceAll("sig=[^&]*", "sig=" + "A".repeat(43) + "%3D"));
        return changes.entrySet().stream().map(change -> withRow(change.getKey(), table -> {
            String token = change.getValue().apply(table.generateSas(granting("r")));
            refused(403, "AuthenticationFailed", () -> read(serviceWith(token).getTableClient(table.getTableName())));
        }));
    }

    @TestFactory
    Stream<DynamicTest> aTokenIsForItsEntitiesOnly() {
        Map<String, BiConsumer<TableServiceClient, TableClient>> beyond = Map.of(
            "create table", (s, t) -> s.createTable(fresh()),
            "delete table", (s, t) -> s.deleteTable(t.getTableName()),
            "get policies", (s, t) -> t.getAccessPolicies(),
            "set policies", (s, t) -> t.setAccessPolicies(List.of()),
            "get properties", (s, t) -> s.getProperties(),
            "another table", (s, t) -> read(s.getTableClient(fresh())));
        return Stream.concat(
            Stream.of(withRow("list tables", table -> refusedAsText(403, "AuthorizationFailure",
                () -> serviceWith(table.generateSas(granting("raud"))).listTables().stream().count()))),
            beyond.entrySet().stream().map(one -> withRow(one.getKey(), table -> {
                TableServiceClient stranger = serviceWith(table.generateSas(granting("raud")));
                refusedAsText(403, "AuthorizationFailure",
                    () -> one.getValue().accept(stranger, stranger.getTableClient(table.getTableName())));
            })));
    }

    private static final List<TableTransactionAction> ACTIONS = List.of(
        new TableTransactionAction(CREATE, entity("p", "new")),
        new TableTransactionAction(UPDATE_MERGE, entity("p", "r", "A", 2)));

    private static void failed(String code, TableClient client) {
        var failure = assertThrows(TableTransactionFailedException.class, () -> client.submitTransaction(ACTIONS));
        assertEquals(code, failure.getValue().getErrorCode().toString());
    }

    @TestFactory
    Stream<DynamicTest> transactions() {
        Map<String, Object> above = Map.of("startPartitionKey", "p", "startRowKey", "o");
        return Stream.of(
            withRow("granted", table -> {
                holder(table, granting("au")).submitTransaction(ACTIONS);
                assertEquals(List.of("new", "r"), rowKeys(all(table)));
            }),
            withRow("permission", table -> {
                failed("AuthorizationPermissionMismatch", holder(table, granting("ru")));
                failed("AuthorizationPermissionMismatch", holder(table, granting("ra")));
                assertEquals(List.of("r"), rowKeys(all(table)));
            }),
            withRow("range", table -> {
                failed("AuthorizationFailure", holder(table, between(granting("raud"), above)));
                assertEquals(List.of("r"), rowKeys(all(table)));
            }));
    }

    private static TableSignedIdentifier policy(String id, String letters, OffsetDateTime expiry) {
        return new TableSignedIdentifier(id).setAccessPolicy(new TableAccessPolicy().setPermissions(letters).setExpiresOn(expiry));
    }

    @TestFactory
    Stream<DynamicTest> policiesGrantAndAreRevoked() {
        List<TableSignedIdentifier> reader = List.of(policy("reader", "r", hours(1)));
        Map<String, List<TableSignedIdentifier>> revoked = Map.of(
            "cleared", List.of(),
            "renamed", List.of(policy("reader2", "r", hours(1))),
            "expired", List.of(policy("reader", "r", hours(-1))));
        return revoked.entrySet().stream().map(change -> withRow(change.getKey(), table -> {
            TableClient client = holder(table, new TableSasSignatureValues("reader"));
            table.setAccessPolicies(reader);
            read(client);
            refused(403, "AuthorizationPermissionMismatch", () -> client.upsertEntity(entity("p", "r")));
            table.setAccessPolicies(change.getValue());
            refused(403, "AuthenticationFailed", () -> read(client));
            table.setAccessPolicies(reader);
            read(client);
        }));
    }

    @TestFactory
    Stream<DynamicTest> policyAndToken() {
        return Stream.of(
            withRow("complete each other", table -> {
                table.setAccessPolicies(List.of(policy("reader", "r", null)));
                read(holder(table, new TableSasSignatureValues("reader").setExpiryTime(hours(1))));
            }),
            withRow("do not overlap", table -> {
                table.setAccessPolicies(List.of(policy("reader", "r", hours(1))));
                TableSasSignatureValues both = new TableSasSignatureValues("reader").setExpiryTime(hours(1));
                refused(403, "AuthenticationFailed", () -> read(holder(table, both)));
            }));
    }

    private record OnAccount(String name, String type, String needs, BiConsumer<TableServiceClient, String> act) {
    }

    private static List<OnAccount> onAccount() {
        List<OnAccount> all = new ArrayList<>(List.of(
            new OnAccount("delete table", "c", "d", TableServiceClient::deleteTable),
            new OnAccount("get properties", "s", "r", (s, t) -> s.getProperties()),
            new OnAccount("set properties", "s", "w", (s, t) -> s.setProperties(new TableServiceProperties()))));
        OPERATIONS.forEach(o -> all.add(new OnAccount(o.name, "o", o.needs, (s, t) -> o.act.accept(s.getTableClient(t)))));
        return all;
    }

    @TestFactory
    Stream<DynamicTest> accountTokenSuffices() {
        return onAccount().stream().map(o -> withRow(o.name, table ->
            o.act.accept(accountHolder(o.type, o.needs), table.getTableName())));
    }

    @TestFactory
    Stream<DynamicTest> accountTokenNeedsTheResourceType() {
        return onAccount().stream().map(o -> withRow(o.name, table -> refusedAsText(403, "AuthorizationResourceTypeMismatch",
            () -> o.act.accept(accountHolder(without("sco", o.type), "rwdlacu"), table.getTableName()))));
    }

    @TestFactory
    Stream<DynamicTest> accountTokenNeedsThePermission() {
        return onAccount().stream().flatMap(o -> o.needs.chars().mapToObj(Character::toString)
            .map(letter -> withRow(o.name + " needs " + letter, table -> refusedAsText(403, "AuthorizationPermissionMismatch",
                () -> o.act.accept(accountHolder("sco", without("rwdlacu", letter)), table.getTableName())))));
    }

    @Test
    void accountTokenCreatesTables() {
        for (String letter : List.of("c", "w")) {
            String name = fresh();
            accountHolder("c", letter).createTable(name);
            accountHolder("c", "d").deleteTable(name);
        }
        refused(403, "AuthorizationPermissionMismatch", () -> accountHolder("sco", "rdlau").createTable(fresh()));
        refused(403, "AuthorizationResourceTypeMismatch", () -> accountHolder("so", "rwdlacu").createTable(fresh()));
    }

    @Test
    void accountTokenListsTables() {
        refusedAsText(403, "AuthorizationResourceTypeMismatch", () -> accountHolder("s", "l").listTables().stream().count());
        accountHolder("c", "l").listTables().stream().count();
        refusedAsText(403, "AuthorizationResourceTypeMismatch", () -> accountHolder("o", "rwdlacu").listTables().stream().count());
        refusedAsText(403, "AuthorizationPermissionMismatch", () -> accountHolder("sco", "rwdacu").listTables().stream().count());
    }

    @Test
    void accountTokenForServices() {
        accountHolder("sco", "rl", "bqtf").listTables().stream().count();
        refusedAsText(403, "AuthorizationServiceMismatch", () -> accountHolder("sco", "rl", "bqf").listTables().stream().count());
    }

    @TestFactory
    Stream<DynamicTest> accountTokenIsNotForPolicies() {
        return Stream.of(withRow("get", table -> refusedAsText(403, "AuthorizationFailure",
            () -> accountHolder("sco", "rwdlacu").getTableClient(table.getTableName()).getAccessPolicies())));
    }
}
