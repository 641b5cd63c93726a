package conformance;

import static conformance.Server.ACCOUNT;
import static conformance.Server.ENDPOINT;
import static conformance.Server.KEY;
import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.refused;
import static conformance.Server.refusedAsText;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Named.named;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.TableServiceException;
import java.util.Base64;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.Named;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.MethodSource;

class ErrorsTest extends WithTable {
    private static final String WRONG_KEY = Base64.getEncoder().encodeToString("not the key".getBytes());

    static Stream<Named<Consumer<TableClient>>> writes() {
        return Stream.of(
            named("insert", t -> t.createEntity(entity("p", "new"))),
            named("update", t -> t.updateEntity(entity("p", "r"))),
            named("upsert", t -> t.upsertEntity(entity("p", "r"))));
    }

    static Stream<Named<Consumer<TableClient>>> operations() {
        return Stream.concat(Stream.of(named("get", t -> t.getEntity("p", "r"))), writes());
    }

    @ParameterizedTest
    @MethodSource("operations")
    void missingTable(Consumer<TableClient> act) {
        refused(404, "TableNotFound", () -> act.accept(service.getTableClient(fresh())));
    }

    @ParameterizedTest
    @MethodSource("operations")
    void wrongKey(Consumer<TableClient> act) {
        TableClient stranger = Server.service(ENDPOINT, WRONG_KEY).getTableClient(table.getTableName());
        refused(403, "AuthenticationFailed", () -> act.accept(stranger));
    }

    @Test
    void listings() {
        refusedAsText(404, "TableNotFound", () -> service.getTableClient(fresh()).listEntities().stream().count());
        TableServiceClient stranger = Server.service(ENDPOINT, WRONG_KEY);
        refusedAsText(403, "AuthenticationFailed", () -> stranger.listTables().stream().count());
    }

    @Test
    void messageNamesTheRequest() {
        TableServiceException refusal = refused(404, "ResourceNotFound", () -> table.getEntity("p", "missing"));
        String id = refusal.getResponse().getHeaderValue("x-ms-request-id");
        String message = refusal.getValue().getErrorMessage();
        assertTrue(message.startsWith("The specified resource does not exist.\nRequestId:" + id + "\nTime:"), message);
    }

    @Test
    void connectionString() {
        String text = "DefaultEndpointsProtocol=http;AccountName=" + ACCOUNT + ";AccountKey=" + KEY + ";TableEndpoint=" + ENDPOINT + ";";
        TableServiceClient client = new TableServiceClientBuilder().connectionString(text).buildClient();
        assertTrue(client.listTables().stream().anyMatch(t -> t.getName().equals(table.getTableName())));
    }

    @Test
    void secondaryReadsAndDoesNotWrite() {
        table.createEntity(entity("p", "r"));
        TableClient secondary = Server.service(ENDPOINT + "-secondary", KEY).getTableClient(table.getTableName());
        assertEquals("r", secondary.getEntity("p", "r").getRowKey());
        assertEquals(1, secondary.listEntities().stream().count());
        writes().forEach(write -> refused(403, "InsufficientAccountPermissions", () -> write.getPayload().accept(secondary)));
        assertEquals(1, table.listEntities().stream().count());
    }
}
