package conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;

import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.Context;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.QueueServiceClientBuilder;
import com.azure.storage.queue.models.PeekedMessageItem;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.QueueStorageException;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.util.List;
import java.util.UUID;
import java.util.function.Supplier;
import org.junit.jupiter.api.function.Executable;

/** What every test needs: clients of the server under test, fresh queues, and what the server said. */
final class Server {
    static final String ENDPOINT =
        System.getenv().getOrDefault("PARTITA_QUEUE_ENDPOINT", "http://127.0.0.1:10001/devstoreaccount1").replaceAll("/$", "");
    static final String ACCOUNT = "devstoreaccount1";
    static final String KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    static final StorageSharedKeyCredential CREDENTIAL = new StorageSharedKeyCredential(ACCOUNT, KEY);

    /** Makes a queue for one test. */
    interface Act {
        void on(QueueClient queue) throws Exception;
    }

    /** A builder without retries: a retry would hide a wrong answer. */
    static QueueServiceClientBuilder builder(String endpoint) {
        return new QueueServiceClientBuilder().endpoint(endpoint).retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1))));
    }

    static QueueServiceClient service() {
        return builder(ENDPOINT).credential(CREDENTIAL).buildClient();
    }

    static QueueClient missing() {
        return service().getQueueClient(fresh());
    }

    static String fresh() {
        return "java-" + UUID.randomUUID();
    }

    static void withQueue(Act act) throws Exception {
        QueueClient queue = service().createQueue(fresh());
        try {
            act.on(queue);
        } finally {
            queue.deleteIfExists();
        }
    }

    static SendMessageResult put(QueueClient queue, String text, Integer visibility, Integer timeToLive) {
        return queue.sendMessageWithResponse(text, seconds(visibility), seconds(timeToLive), null, Context.NONE).getValue();
    }

    static List<QueueMessageItem> take(QueueClient queue, int number, int visibility) {
        return queue.receiveMessages(number, seconds(visibility), null, Context.NONE).stream().toList();
    }

    static List<PeekedMessageItem> peek(QueueClient queue, int number) {
        return queue.peekMessages(number, null, Context.NONE).stream().toList();
    }

    static void remove(QueueClient queue, QueueMessageItem message) {
        queue.deleteMessage(message.getMessageId(), message.getPopReceipt());
    }

    static List<String> texts(List<QueueMessageItem> messages) {
        return messages.stream().map(message -> message.getBody().toString()).toList();
    }

    static List<String> peeked(QueueClient queue) {
        return peek(queue, 32).stream().map(message -> message.getBody().toString()).toList();
    }

    static int count(QueueClient queue) {
        return queue.getProperties().getApproximateMessagesCount();
    }

    static Duration seconds(Integer count) {
        return count == null ? null : Duration.ofSeconds(count);
    }

    /** The first answer that is not empty. The server decides when; a slow machine may ask late. */
    static <T> List<T> soon(Supplier<List<T>> act) throws InterruptedException {
        for (int tries = 0; tries < 1200; tries++) {
            List<T> found = act.get();
            if (!found.isEmpty()) {
                return found;
            }
            Thread.sleep(50);
        }
        return fail("nothing came in time");
    }

    /** Demands the SDK's exception with this status and the service's code. */
    static QueueStorageException refused(int status, String code, Executable act) {
        QueueStorageException refusal = assertThrows(QueueStorageException.class, act);
        assertEquals(status + " " + code, refusal.getStatusCode() + " " + refusal.getErrorCode());
        return refusal;
    }

    static void gone(Executable act) {
        refused(404, "MessageNotFound", act);
    }

    private Server() {
    }
}
