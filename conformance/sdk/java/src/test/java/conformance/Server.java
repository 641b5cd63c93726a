package conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import com.azure.data.tables.TableServiceClientBuilder;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableServiceException;
import com.azure.json.JsonProviders;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.UUID;
import org.junit.jupiter.api.function.Executable;

/** What every test needs: clients of the server under test, fresh tables, and what the server said. */
final class Server {
    static final String ENDPOINT =
        System.getenv().getOrDefault("PARTITA_ENDPOINT", "http://127.0.0.1:10002/devstoreaccount1").replaceAll("/$", "");
    static final String ACCOUNT = "devstoreaccount1";
    static final String KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";

    private static final Set<String> SYSTEM =
        Set.of("PartitionKey", "RowKey", "Timestamp", "odata.etag", "odata.id", "odata.type", "odata.editLink", "odata.metadata");

    static TableServiceClient service() {
        return service(ENDPOINT, KEY);
    }

    static TableServiceClient service(String endpoint, String key) {
        // A retry would hide a wrong answer.
        return new TableServiceClientBuilder().endpoint(endpoint)
            .credential(new AzureNamedKeyCredential(ACCOUNT, key))
            .retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ZERO)))
            .buildClient();
    }

    static String fresh() {
        return "java" + UUID.randomUUID().toString().replace("-", "");
    }

    static TableEntity entity(String partition, String row, Object... namesAndValues) {
        TableEntity entity = new TableEntity(partition, row);
        for (int i = 0; i < namesAndValues.length; i += 2) {
            entity.addProperty((String) namesAndValues[i], namesAndValues[i + 1]);
        }
        return entity;
    }

    static List<TableEntity> query(TableClient table, String filter) {
        return table.listEntities(new ListEntitiesOptions().setFilter(filter), null, Context.NONE).stream().toList();
    }

    static List<TableEntity> inPartition(TableClient table, String partition) {
        return query(table, "PartitionKey eq " + quoted(partition));
    }

    static String quoted(String text) {
        return "'" + text.replace("'", "''") + "'";
    }

    static List<String> rowKeys(List<TableEntity> entities) {
        return entities.stream().map(TableEntity::getRowKey).toList();
    }

    /** The properties the caller gave, without what the service adds. */
    static Map<String, Object> custom(TableEntity entity) {
        Map<String, Object> rest = new HashMap<>(entity.getProperties());
        rest.keySet().removeIf(name -> SYSTEM.contains(name) || name.endsWith("@odata.type"));
        return rest;
    }

    /** Demands the SDK's exception with this status and the service's code. */
    static TableServiceException refused(int status, String code, Executable act) {
        TableServiceException refusal = assertThrows(TableServiceException.class, act);
        assertEquals(status, refusal.getResponse().getStatusCode());
        assertEquals(code, refusal.getValue().getErrorCode().toString());
        return refusal;
    }

    /** The same of listings and of answers in XML, which the SDK leaves undecoded: the code is in the message. */
    static void refusedAsText(int status, String code, Executable act) {
        HttpResponseException refusal = assertThrows(HttpResponseException.class, act);
        assertEquals(status, refusal.getResponse().getStatusCode());
        assertTrue(refusal.getMessage().contains(code), refusal.getMessage());
    }

    @SuppressWarnings("unchecked")
    static Map<String, Object> cases(String file) {
        try (var reader = JsonProviders.createReader(Files.readString(Path.of("../cases", file)))) {
            return (Map<String, Object>) reader.readUntyped();
        } catch (IOException e) {
            throw new UncheckedIOException(e);
        }
    }

    private Server() {
    }
}
