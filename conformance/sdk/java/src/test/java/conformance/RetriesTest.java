package conformance;

import static conformance.Server.entity;
import static conformance.Server.fresh;
import static conformance.Server.inPartition;
import static conformance.Server.refused;
import static conformance.Server.rowKeys;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.azure.core.credential.AzureNamedKeyCredential;
import com.azure.core.http.HttpPipelineCallContext;
import com.azure.core.http.HttpPipelineNextPolicy;
import com.azure.core.http.HttpPipelinePosition;
import com.azure.core.http.HttpResponse;
import com.azure.core.http.policy.HttpPipelinePolicy;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClientBuilder;
import java.io.BufferedReader;
import java.io.IOException;
import java.util.List;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.IntStream;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import reactor.core.publisher.Mono;

/** A busy server: the SDK's own retries get the work done, and without them its exception says so. */
class RetriesTest {
    private static final List<String> NAMES = IntStream.range(0, 12).mapToObj(number -> String.format("%03d", number)).toList();

    private static Process server;
    private static String endpoint;

    /** It grants a partition two entities a second, so that the slowest machine asks for more. */
    @BeforeAll
    static void start() throws IOException {
        String binary = System.getenv("PARTITA_BINARY");
        assumeTrue(binary != null && !binary.isEmpty(), "PARTITA_BINARY names no server to start");
        server = new ProcessBuilder(binary, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error",
            "--throttle", "100000/2").redirectError(ProcessBuilder.Redirect.DISCARD).start();
        BufferedReader output = server.inputReader();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            Matcher found = Pattern.compile("TableEndpoint=([^;]+)").matcher(line);
            if (found.find()) {
                endpoint = found.group(1);
                return;
            }
        }
        fail("the server did not start");
    }

    @AfterAll
    static void stop() {
        if (server != null) {
            server.destroy();
        }
    }

    private static void fill(TableClient table) {
        NAMES.forEach(name -> table.createEntity(entity("p", name)));
    }

    private static final class Watch implements HttpPipelinePolicy {
        final AtomicInteger refusals = new AtomicInteger();

        private HttpResponse count(HttpResponse answer) {
            if (answer.getStatusCode() == 503) {
                refusals.incrementAndGet();
            }
            return answer;
        }

        @Override
        public Mono<HttpResponse> process(HttpPipelineCallContext context, HttpPipelineNextPolicy next) {
            return next.process().map(this::count);
        }

        @Override
        public HttpPipelinePosition getPipelinePosition() {
            return HttpPipelinePosition.PER_RETRY;
        }
    }

    @Test
    void retriesGetEverythingWritten() {
        Watch watch = new Watch();
        TableClient table = new TableServiceClientBuilder().endpoint(endpoint)
            .credential(new AzureNamedKeyCredential(Server.ACCOUNT, Server.KEY))
            .addPolicy(watch)
            .buildClient()
            .createTable(fresh());
        fill(table);
        assertEquals(NAMES, rowKeys(inPartition(table, "p")));
        assertTrue(watch.refusals.get() > 0, "the server was never busy");
    }

    @Test
    void withoutRetriesItIsTheSdksException() {
        TableClient table = Server.service(endpoint, Server.KEY).createTable(fresh());
        refused(503, "ServerBusy", () -> fill(table));
    }
}
