package conformance;

import static conformance.Server.count;
import static conformance.Server.fresh;
import static conformance.Server.missing;
import static conformance.Server.peeked;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.service;
import static conformance.Server.take;
import static conformance.Server.withQueue;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.exception.HttpResponseException;
import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueClientBuilder;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueCorsRule;
import com.azure.storage.queue.models.QueueItem;
import com.azure.storage.queue.models.QueueMetrics;
import com.azure.storage.queue.models.QueueRetentionPolicy;
import com.azure.storage.queue.models.QueueServiceProperties;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.models.QueuesSegmentOptions;
import java.time.OffsetDateTime;
import java.util.Base64;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Queues and their service: made once, listed in order and in pages, with metadata, policies and properties. */
class QueuesTest {
    @Test
    void aQueueIsMadeAndDeleted() {
        QueueClient queue = missing();
        refused(404, "QueueNotFound", queue::getProperties);
        queue.create();
        assertEquals(0, count(queue));
        queue.create(); // 204
        queue.delete();
        refused(404, "QueueNotFound", queue::delete);
    }

    @Test
    void ifItIsMissingAndIfItExists() {
        QueueClient queue = missing();
        assertTrue(queue.createIfNotExists());
        Map<String, String> other = Map.of("other", "1");
        assertFalse(queue.createIfNotExistsWithResponse(other, null, Context.NONE).getValue());
        refused(409, "QueueAlreadyExists", () -> queue.createWithResponse(other, null, Context.NONE));
        assertTrue(queue.deleteIfExists());
        assertFalse(queue.deleteIfExists());
    }

    @ParameterizedTest
    @ValueSource(strings = {"a_b", "-ab", "a--b", "Abc", "queue-"})
    void namesAreRefused(String name) {
        refused(400, "InvalidResourceName", () -> service().createQueue(name));
    }

    @Test
    void namesHaveALength() {
        refused(400, "OutOfRangeInput", () -> service().createQueue("ab"));
        refused(400, "OutOfRangeInput", () -> service().createQueue("a".repeat(64)));
    }

    @Test
    void metadata() throws Exception {
        withQueue(queue -> {
            Map<String, String> metadata = Map.of("hello", "world", "under_score", "va@lue", "json", "{\"a\": [1]}");
            queue.setMetadata(metadata);
            assertEquals(metadata, queue.getProperties().getMetadata());
            queue.setMetadata(Map.of("b", "3"));
            assertEquals(Map.of("b", "3"), queue.getProperties().getMetadata());
            queue.setMetadata(null);
            assertEquals(Map.of(), queue.getProperties().getMetadata());
            refused(400, "InvalidMetadata", () -> queue.setMetadata(Map.of("invalid-meta", "1")));
            refused(400, "InvalidMetadata", () -> queue.setMetadata(Map.of("12345", "1")));
        });
        refused(404, "QueueNotFound", () -> missing().setMetadata(Map.of("a", "1")));
    }

    @Test
    void theCountHasInvisibleMessagesToo() throws Exception {
        withQueue(queue -> {
            put(queue, "a", 0, null);
            put(queue, "b", 60, null);
            take(queue, 1, 60);
            assertEquals(2, count(queue));
        });
    }

    @Test
    void policies() throws Exception {
        withQueue(queue -> {
            OffsetDateTime start = OffsetDateTime.parse("2026-01-02T03:04:05Z");
            OffsetDateTime expiry = OffsetDateTime.parse("2036-01-01T00:00:00Z");
            QueueAccessPolicy full = new QueueAccessPolicy().setPermissions("raup").setStartsOn(start).setExpiresOn(expiry);
            queue.setAccessPolicy(List.of(new QueueSignedIdentifier().setId("full").setAccessPolicy(full)));
            QueueSignedIdentifier found = queue.getAccessPolicy().stream().findFirst().orElseThrow();
            assertEquals(List.of("full", "raup", start, expiry), List.of(found.getId(), found.getAccessPolicy().getPermissions(),
                found.getAccessPolicy().getStartsOn(), found.getAccessPolicy().getExpiresOn()));
            queue.setAccessPolicy(List.of());
            assertEquals(0, queue.getAccessPolicy().stream().count());
            List<QueueSignedIdentifier> six = IntStream.range(0, 6)
                .mapToObj(number -> new QueueSignedIdentifier().setId("" + number).setAccessPolicy(full)).toList();
            refused(400, "InvalidXmlDocument", () -> queue.setAccessPolicy(six));
        });
        refused(404, "QueueNotFound", () -> missing().getAccessPolicy().stream().count());
    }

    @Test
    void lists() {
        QueueServiceClient service = service();
        String prefix = fresh().substring(0, 15);
        List<String> names = IntStream.range(0, 7).mapToObj(number -> prefix + "x" + number).toList();
        names.forEach(name -> service.createQueueWithResponse(name, Map.of("name", name), null, Context.NONE));
        for (int size : List.of(1, 3, 7, 8)) {
            QueuesSegmentOptions options = new QueuesSegmentOptions().setPrefix(prefix).setMaxResultsPerPage(size);
            List<PagedResponse<QueueItem>> pages = service.listQueues(options, null, Context.NONE).streamByPage().toList();
            assertEquals((6 + size) / size, pages.size());
            assertEquals(names, pages.stream().flatMap(page -> page.getValue().stream()).map(QueueItem::getName).toList());
        }
        QueuesSegmentOptions withMetadata = new QueuesSegmentOptions().setPrefix(prefix).setIncludeMetadata(true);
        assertEquals(names, service.listQueues(withMetadata, null, Context.NONE).stream().map(item -> item.getMetadata().get("name")).toList());
        assertTrue(service.listQueues().stream().map(QueueItem::getName).toList().containsAll(names));
        names.forEach(service::deleteQueue);
    }

    @Test
    void properties() {
        QueueServiceClient service = service();
        QueueServiceProperties before = service.getProperties();
        QueueCorsRule rule = new QueueCorsRule().setAllowedOrigins("www.xyz.com").setAllowedMethods("GET,PUT").setAllowedHeaders("x-ms-*")
            .setExposedHeaders("*").setMaxAgeInSeconds(500);
        QueueRetentionPolicy days = new QueueRetentionPolicy().setEnabled(true).setDays(7);
        QueueMetrics metrics = new QueueMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(days);
        service.setProperties(new QueueServiceProperties().setMinuteMetrics(metrics).setCors(List.of(rule)));
        QueueServiceProperties found = service.getProperties();
        assertEquals(7, found.getMinuteMetrics().getRetentionPolicy().getDays());
        assertEquals("www.xyz.com", found.getCors().get(0).getAllowedOrigins());
        refused(400, "InvalidXmlDocument",
            () -> service.setProperties(new QueueServiceProperties().setCors(Collections.nCopies(6, rule))));
        service.setProperties(before.setCors(List.of()));
    }

    @Test
    void statisticsAndTheSecondary() throws Exception {
        QueueServiceClient second = Server.builder(Server.ENDPOINT + "-secondary").credential(Server.CREDENTIAL).buildClient();
        // This version of the SDK wants a root element that the service does not send, so it cannot read the service's answer.
        HttpResponseException unread = assertThrows(HttpResponseException.class, second::getStatistics);
        assertTrue(unread.getCause().getMessage().contains("it was: {}StorageServiceStats"), unread.getCause().getMessage());
        withQueue(queue -> {
            queue.sendMessage("a");
            assertEquals(List.of("a"), peeked(second.getQueueClient(queue.getQueueName())));
        });
    }

    @Test
    void connectionStringAndWrongKey() throws Exception {
        withQueue(queue -> {
            String string = "DefaultEndpointsProtocol=http;AccountName=" + Server.ACCOUNT + ";AccountKey=" + Server.KEY
                + ";QueueEndpoint=" + Server.ENDPOINT + ";";
            assertEquals(0, count(new QueueClientBuilder().connectionString(string).queueName(queue.getQueueName()).buildClient()));
        });
        StorageSharedKeyCredential wrong = new StorageSharedKeyCredential(Server.ACCOUNT, Base64.getEncoder().encodeToString(new byte[64]));
        refused(403, "AuthenticationFailed", () -> Server.builder(Server.ENDPOINT).credential(wrong).buildClient().createQueue(fresh()));
    }
}
