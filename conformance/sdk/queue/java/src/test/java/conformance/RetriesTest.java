package conformance;

import static conformance.Server.count;
import static conformance.Server.fresh;
import static conformance.Server.refused;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.storage.queue.QueueClient;
import java.io.BufferedReader;
import java.io.IOException;
import java.time.Duration;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;

/** A busy server: the SDK's own retries get the work done, and without them its exception says so. */
class RetriesTest {
    private static Process server;
    private static String endpoint;

    /** It grants a queue two messages a second, so that the slowest machine asks for more. */
    @BeforeAll
    static void start() throws IOException {
        String binary = System.getenv("PARTITA_BINARY");
        assumeTrue(binary != null && !binary.isEmpty(), "PARTITA_BINARY names no server to start");
        server = new ProcessBuilder(binary, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error",
            "--throttle", "100000/2").redirectError(ProcessBuilder.Redirect.DISCARD).start();
        BufferedReader output = server.inputReader();
        for (String line = output.readLine(); line != null; line = output.readLine()) {
            Matcher found = Pattern.compile("QueueEndpoint=([^;]+)").matcher(line);
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

    private static void fill(QueueClient queue) {
        for (int number = 0; number < 12; number++) {
            queue.sendMessage("a");
        }
    }

    @Test
    void retriesGetEverythingPut() {
        RetryOptions retries = new RetryOptions(new FixedDelayOptions(5, Duration.ofMillis(500)));
        QueueClient queue = Server.builder(endpoint).credential(Server.CREDENTIAL).retryOptions(retries).buildClient().createQueue(fresh());
        fill(queue);
        assertEquals(12, count(queue));
    }

    @Test
    void withoutRetriesItIsTheSdksException() {
        QueueClient queue = Server.builder(endpoint).credential(Server.CREDENTIAL).buildClient().createQueue(fresh());
        refused(503, "ServerBusy", () -> fill(queue));
    }
}
