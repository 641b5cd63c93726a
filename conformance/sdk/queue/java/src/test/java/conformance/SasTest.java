package conformance;

import static conformance.Server.fresh;
import static conformance.Server.peek;
import static conformance.Server.refused;
import static conformance.Server.take;
import static conformance.Server.withQueue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import com.azure.storage.common.sas.SasProtocol;
import com.azure.storage.queue.QueueClient;
import com.azure.storage.queue.QueueServiceClient;
import com.azure.storage.queue.models.QueueAccessPolicy;
import com.azure.storage.queue.models.QueueSignedIdentifier;
import com.azure.storage.queue.models.SendMessageResult;
import com.azure.storage.queue.sas.QueueSasPermission;
import com.azure.storage.queue.sas.QueueServiceSasSignatureValues;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.function.BiConsumer;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Shared access signatures: the SDK's tokens do what they grant, and nothing else. */
class SasTest {
    private record Operation(String name, String type, String needs, BiConsumer<QueueClient, SendMessageResult> act) {
    }

    private static final List<Operation> OPERATIONS = List.of(
        new Operation("peek", "o", "r", (queue, message) -> queue.peekMessage()),
        new Operation("get metadata", "c", "r", (queue, message) -> queue.getProperties()),
        new Operation("put", "o", "a", (queue, message) -> queue.sendMessage("b")),
        new Operation("get", "o", "p", (queue, message) -> queue.receiveMessage()),
        new Operation("update", "o", "u",
            (queue, message) -> queue.updateMessage(message.getMessageId(), message.getPopReceipt(), "b", Duration.ZERO)),
        new Operation("delete", "o", "p", (queue, message) -> queue.deleteMessage(message.getMessageId(), message.getPopReceipt())));

    private static OffsetDateTime hours(double count) {
        return OffsetDateTime.now().plusSeconds((long) (count * 3600));
    }

    private static String without(String letters, String given) {
        return letters.replaceAll("[" + given + "]", "");
    }

    private static QueueServiceSasSignatureValues granting(String letters) {
        return new QueueServiceSasSignatureValues(hours(1), QueueSasPermission.parse(letters));
    }

    private static QueueServiceClient serviceWith(String token) {
        return Server.builder(Server.ENDPOINT).sasToken(token).buildClient();
    }

    private static QueueClient holder(QueueClient queue, QueueServiceSasSignatureValues values) {
        return serviceWith(queue.generateSas(values)).getQueueClient(queue.getQueueName());
    }

    private static QueueServiceClient accountHolder(String types, String letters, String services) {
        return serviceWith(Server.service().generateAccountSas(new AccountSasSignatureValues(hours(1), AccountSasPermission.parse(letters),
            AccountSasService.parse(services), AccountSasResourceType.parse(types))));
    }

    private static void unauthenticated(QueueClient client) {
        refused(403, "AuthenticationFailed", () -> peek(client, 1));
    }

    @TestFactory
    Stream<DynamicTest> permissions() {
        return OPERATIONS.stream().map(o -> dynamicTest(o.name, () -> withQueue(queue -> {
            SendMessageResult message = queue.sendMessage("a");
            refused(403, "AuthorizationPermissionMismatch",
                () -> o.act.accept(holder(queue, granting(without("raup", o.needs))), message));
            o.act.accept(holder(queue, granting(o.needs)), message);
        })));
    }

    @TestFactory
    Stream<DynamicTest> whatNoQueueTokenPermits() {
        Map<String, Consumer<QueueClient>> beyond = Map.of("create", QueueClient::create, "delete", QueueClient::delete,
            "clear", QueueClient::clearMessages, "set metadata", queue -> queue.setMetadata(Map.of()),
            "get policies", queue -> queue.getAccessPolicy().stream().count(), "set policies", queue -> queue.setAccessPolicy(List.of()));
        return beyond.entrySet().stream().map(one -> dynamicTest(one.getKey(), () -> withQueue(queue ->
            refused(403, "AuthorizationFailure", () -> one.getValue().accept(holder(queue, granting("raup")))))));
    }

    @Test
    void timesAddressesAndProtocols() throws Exception {
        withQueue(queue -> {
            peek(holder(queue, granting("r").setStartTime(hours(-1))), 1);
            unauthenticated(holder(queue, granting("r").setStartTime(hours(0.5))));
            unauthenticated(holder(queue, granting("r").setExpiryTime(hours(-0.01))));
            peek(holder(queue, granting("r").setSasIpRange(SasIpRange.parse("0.0.0.0-255.255.255.255")).setProtocol(SasProtocol.HTTPS_HTTP)), 1);
            refused(403, "AuthorizationSourceIPMismatch",
                () -> peek(holder(queue, granting("r").setSasIpRange(SasIpRange.parse("203.0.113.1"))), 1));
            if (Server.ENDPOINT.startsWith("http:")) {
                refused(403, "AuthorizationProtocolMismatch",
                    () -> peek(holder(queue, granting("r").setProtocol(SasProtocol.HTTPS_ONLY)), 1));
            }
        });
    }

    @Test
    void tampered() throws Exception {
        withQueue(queue -> {
            String token = queue.generateSas(granting("r"));
            unauthenticated(serviceWith(token.replace("sp=r", "sp=raup")).getQueueClient(queue.getQueueName()));
            unauthenticated(serviceWith(token).getQueueClient(fresh()));
        });
    }

    @Test
    void aStoredPolicy() throws Exception {
        withQueue(queue -> {
            QueueClient client = holder(queue, new QueueServiceSasSignatureValues("worker"));
            unauthenticated(client);
            for (List<QueueSignedIdentifier> revoked : List.of(List.<QueueSignedIdentifier>of(), policy("other", 1), policy("worker", -1))) {
                queue.setAccessPolicy(policy("worker", 1));
                peek(client, 1);
                refused(403, "AuthorizationPermissionMismatch", () -> client.sendMessage("a"));
                queue.setAccessPolicy(revoked);
                unauthenticated(client);
            }
        });
    }

    private static List<QueueSignedIdentifier> policy(String id, double expiry) {
        return List.of(new QueueSignedIdentifier().setId(id)
            .setAccessPolicy(new QueueAccessPolicy().setPermissions("r").setExpiresOn(hours(expiry))));
    }

    @TestFactory
    Stream<DynamicTest> accountTokens() {
        List<Operation> all = new ArrayList<>(OPERATIONS);
        all.add(new Operation("clear", "o", "d", (queue, message) -> queue.clearMessages()));
        all.add(new Operation("set metadata", "c", "w", (queue, message) -> queue.setMetadata(Map.of("a", "1"))));
        all.add(new Operation("delete queue", "c", "d", (queue, message) -> queue.delete()));
        return all.stream().map(o -> dynamicTest(o.name, () -> withQueue(queue -> {
            SendMessageResult message = queue.sendMessage("a");
            String name = queue.getQueueName();
            refused(403, "AuthorizationResourceTypeMismatch",
                () -> o.act.accept(accountHolder(without("sco", o.type), "rwdlacup", "q").getQueueClient(name), message));
            refused(403, "AuthorizationPermissionMismatch",
                () -> o.act.accept(accountHolder("sco", without("rwdlacup", o.needs), "q").getQueueClient(name), message));
            o.act.accept(accountHolder(o.type, o.needs, "q").getQueueClient(name), message);
        })));
    }

    @Test
    void accountTokensForTheService() {
        accountHolder("s", "l", "q").listQueues().stream().count();
        accountHolder("s", "r", "bqtf").getProperties();
        refused(403, "AuthorizationServiceMismatch", () -> accountHolder("sco", "rl", "bf").listQueues().stream().count());
        refused(403, "AuthorizationResourceTypeMismatch", () -> accountHolder("co", "rl", "q").listQueues().stream().count());
        for (String letter : List.of("c", "w")) {
            String name = fresh();
            accountHolder("c", letter, "q").createQueue(name);
            accountHolder("c", "d", "q").deleteQueue(name);
        }
    }
}
