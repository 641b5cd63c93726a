package conformance;

import static conformance.Server.count;
import static conformance.Server.gone;
import static conformance.Server.missing;
import static conformance.Server.peek;
import static conformance.Server.peeked;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.remove;
import static conformance.Server.soon;
import static conformance.Server.take;
import static conformance.Server.texts;
import static conformance.Server.withQueue;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNotEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.azure.core.util.BinaryData;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueMessageEncoding;
import com.azure.storage.queue.models.QueueMessageItem;
import com.azure.storage.queue.models.SendMessageResult;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.function.Consumer;
import java.util.stream.IntStream;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Messages: what is put comes back; visibility, receipts, expiry; limits and errors; how applications poll. */
class MessagesTest {
    private static final String ID = "0a1b2c3d-192b-4f77-a501-2ba4be007ea5";
    private static final String RECEIPT = "AgAAAAMAAAAAAAAAkP0RP0Fx2QE=";

    @TestFactory
    Stream<DynamicTest> textsComeBack() {
        Map<String, String> cases = Map.of("plain", "hello", "blanks", "  mess\t age1\n", "markup", "<a href='x'>\"&amp;\" ]]></a>",
            "unicode", "日本語 ñ ß Ω", "emoji", "👩‍👩‍👧 😀", "longest", "a".repeat(65536), "longest escaped", "<".repeat(65536),
            "longest of four bytes", "😀".repeat(16384));
        return cases.entrySet().stream().map(one -> dynamicTest(one.getKey(), () -> withQueue(queue -> {
            queue.sendMessage(one.getValue());
            QueueMessageItem message = take(queue, 1, 60).get(0);
            assertEquals(one.getValue(), message.getBody().toString());
            remove(queue, message);
            assertEquals(0, count(queue));
        })));
    }

    @Test
    void anEmptyText() throws Exception {
        withQueue(queue -> {
            queue.sendMessage("");
            assertNull(take(queue, 1, 60).get(0).getBody()); // so the SDK reads <MessageText />
        });
    }

    @Test
    void textsThatAreRefused() throws Exception {
        withQueue(queue -> {
            refused(413, "RequestBodyTooLarge", () -> queue.sendMessage("a".repeat(65537)));
            refused(413, "RequestBodyTooLarge", () -> queue.sendMessage("é".repeat(32768) + "a"));
            SendMessageResult made = queue.sendMessage("a");
            refused(413, "RequestBodyTooLarge",
                () -> queue.updateMessage(made.getMessageId(), made.getPopReceipt(), "a".repeat(65537), Duration.ZERO));
        });
    }

    @Test
    void base64() throws Exception {
        withQueue(queue -> {
            QueueClient coded = Server.builder(Server.ENDPOINT).credential(Server.CREDENTIAL).messageEncoding(QueueMessageEncoding.BASE64)
                .buildClient().getQueueClient(queue.getQueueName());
            byte[] bytes = new byte[49152];
            bytes[0] = 1;
            coded.sendMessage(BinaryData.fromBytes(bytes));
            assertEquals("AQAA", peek(queue, 1).get(0).getBody().toString().substring(0, 4));
            assertEquals(49152, take(coded, 1, 60).get(0).getBody().toBytes().length);
            refused(413, "RequestBodyTooLarge", () -> coded.sendMessage(BinaryData.fromBytes(new byte[49153])));
        });
    }

    @Test
    void putAndGetSayWhatTheyDid() throws Exception {
        withQueue(queue -> {
            SendMessageResult made = put(queue, "a", 5, 60);
            assertEquals(Duration.ofSeconds(60), Duration.between(made.getInsertionTime(), made.getExpirationTime()));
            assertEquals(Duration.ofSeconds(5), Duration.between(made.getInsertionTime(), made.getTimeNextVisible()));
            assertEquals(9999, put(queue, "never", 60, -1).getExpirationTime().getYear());
            SendMessageResult week = queue.sendMessage("b");
            assertEquals(Duration.ofDays(7), Duration.between(week.getInsertionTime(), week.getExpirationTime()));
            QueueMessageItem got = take(queue, 1, 60).get(0);
            assertEquals(List.of(week.getMessageId(), week.getInsertionTime(), week.getExpirationTime()),
                List.of(got.getMessageId(), got.getInsertionTime(), got.getExpirationTime()));
            assertEquals(1, got.getDequeueCount());
            assertNotEquals(week.getPopReceipt(), got.getPopReceipt());
        });
    }

    @Test
    void orderPeekAndClear() throws Exception {
        withQueue(queue -> {
            List<String> names = IntStream.range(10, 50).mapToObj(Integer::toString).toList();
            names.forEach(queue::sendMessage);
            assertEquals(names.subList(0, 32), peeked(queue));
            assertEquals(0, peek(queue, 1).get(0).getDequeueCount());
            assertEquals(names.subList(0, 32), texts(take(queue, 32, 60)));
            assertEquals(names.subList(32, 40), texts(take(queue, 32, 60)));
            assertEquals(List.of(), take(queue, 32, 60));
            queue.clearMessages();
            assertEquals(0, count(queue));
        });
    }

    @Test
    void hiddenItComesBackWithAnotherReceipt() throws Exception {
        withQueue(queue -> {
            queue.sendMessage("a");
            QueueMessageItem first = take(queue, 1, 1).get(0);
            QueueMessageItem second = soon(() -> take(queue, 1, 60)).get(0);
            assertEquals(first.getMessageId(), second.getMessageId());
            assertEquals(2, second.getDequeueCount());
            assertEquals(List.of(), peeked(queue));
            gone(() -> remove(queue, first));
            remove(queue, second);
            gone(() -> remove(queue, second));
        });
    }

    @Test
    void anExpiredLeaseServesUntilSomebodyTakesTheMessage() throws Exception {
        withQueue(queue -> {
            queue.sendMessage("a");
            QueueMessageItem message = take(queue, 1, 1).get(0);
            soon(() -> peek(queue, 1));
            remove(queue, message);
            assertEquals(0, count(queue));
        });
    }

    @Test
    void delayedAndExpired() throws Exception {
        withQueue(queue -> {
            SendMessageResult later = put(queue, "later", 2, 60);
            SendMessageResult gone = put(queue, "short", 0, 1);
            Thread.sleep(1100);
            soon(() -> peek(queue, 1));
            assertEquals(List.of("later"), peeked(queue));
            assertFalse(OffsetDateTime.now().isBefore(later.getTimeNextVisible()));
            gone(() -> queue.deleteMessage(gone.getMessageId(), gone.getPopReceipt()));
        });
    }

    @Test
    void update() throws Exception {
        withQueue(queue -> {
            queue.sendMessage("a");
            QueueMessageItem got = take(queue, 1, 60).get(0);
            // Without a text, the SDK sends no body, and the text stays.
            String receipt = queue.updateMessage(got.getMessageId(), got.getPopReceipt(), null, Duration.ofSeconds(30)).getPopReceipt();
            gone(() -> remove(queue, got));
            gone(() -> queue.updateMessage(got.getMessageId(), got.getPopReceipt(), "c", Duration.ZERO));
            receipt = queue.updateMessage(got.getMessageId(), receipt, null, Duration.ZERO).getPopReceipt();
            assertEquals(List.of("a"), peeked(queue));
            queue.updateMessage(got.getMessageId(), receipt, "b <é>", Duration.ZERO);
            QueueMessageItem again = take(queue, 1, 60).get(0);
            assertEquals("b <é>", again.getBody().toString());
            assertEquals(2, again.getDequeueCount());
            assertEquals(got.getExpirationTime(), again.getExpirationTime());
        });
    }

    @Test
    void outOfRange() throws Exception {
        withQueue(queue -> {
            String code = "OutOfRangeQueryParameterValue";
            refused(400, code, () -> take(queue, 0, 1));
            refused(400, code, () -> take(queue, 33, 1));
            refused(400, code, () -> peek(queue, 33));
            refused(400, code, () -> take(queue, 1, 0));
            refused(400, code, () -> take(queue, 1, 604801));
            refused(400, "InvalidQueryParameterValue", () -> put(queue, "a", 0, 0));
            refused(400, "InvalidQueryParameterValue", () -> put(queue, "a", 0, -2));
            refused(400, "InvalidQueryParameterValue", () -> put(queue, "a", 30, 30));
        });
    }

    @TestFactory
    Stream<DynamicTest> aMissingQueue() {
        Map<String, Consumer<QueueClient>> acts = Map.of(
            "put", queue -> queue.sendMessage("a"), "get", QueueClient::receiveMessage, "peek", QueueClient::peekMessage,
            "clear", QueueClient::clearMessages, "delete", queue -> queue.deleteMessage(ID, RECEIPT),
            "update", queue -> queue.updateMessage(ID, RECEIPT, "a", Duration.ZERO));
        return acts.entrySet().stream().map(one -> dynamicTest(one.getKey(),
            () -> refused(404, "QueueNotFound", () -> one.getValue().accept(missing()))));
    }

    @Test
    void aMissingMessageAndAReceiptThatIsNone() throws Exception {
        withQueue(queue -> {
            gone(() -> queue.deleteMessage(ID, RECEIPT));
            gone(() -> queue.updateMessage(ID, RECEIPT, "a", Duration.ZERO));
            refused(400, "InvalidQueryParameterValue", () -> queue.deleteMessage(ID, "invalid"));
            refused(400, "InvalidQueryParameterValue", () -> queue.updateMessage(ID, "invalid", "a", Duration.ZERO));
        });
    }

    @Test
    void consumersBesideEachOther() throws Exception {
        withQueue(queue -> {
            List<String> names = IntStream.range(100, 180).mapToObj(Integer::toString).toList();
            names.forEach(queue::sendMessage);
            ConcurrentLinkedQueue<String> taken = new ConcurrentLinkedQueue<>();
            List<Thread> consumers = IntStream.range(0, 6).mapToObj(number -> new Thread(() -> {
                for (var page = take(queue, 7, 300); !page.isEmpty(); page = take(queue, 7, 300)) {
                    page.forEach(message -> {
                        remove(queue, message);
                        taken.add(message.getBody().toString());
                    });
                }
            })).toList();
            consumers.forEach(Thread::start);
            for (Thread consumer : consumers) {
                consumer.join();
            }
            assertEquals(names, taken.stream().sorted().toList());
            assertEquals(0, count(queue));
        });
    }

    /** That of Azure Functions: what fails five times goes to the queue of poison messages. */
    @Test
    void pollLoop() throws Exception {
        withQueue(queue -> {
            QueueClient poison = Server.service().getQueueClient(queue.getQueueName() + "-poison");
            queue.sendMessage("bad");
            queue.sendMessage("good");
            List<String> done = new ArrayList<>();
            for (var page = take(queue, 16, 600); !page.isEmpty(); page = take(queue, 16, 600)) {
                for (QueueMessageItem message : page) {
                    String id = message.getMessageId();
                    String text = message.getBody().toString();
                    String receipt = queue.updateMessage(id, message.getPopReceipt(), null, Duration.ofSeconds(600)).getPopReceipt();
                    if (text.equals("good")) {
                        done.add(text);
                    } else if (message.getDequeueCount() < 5) {
                        queue.updateMessage(id, receipt, null, Duration.ZERO);
                        continue;
                    } else {
                        poison.createIfNotExists();
                        poison.sendMessage(text);
                    }
                    queue.deleteMessage(id, receipt);
                }
            }
            assertEquals(List.of("good"), done);
            assertEquals(0, count(queue));
            assertEquals(List.of("bad"), peeked(poison));
            poison.delete();
        });
    }
}
