package conformance;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.fail;
import static org.junit.jupiter.api.Assumptions.assumeTrue;

import com.azure.core.http.policy.FixedDelayOptions;
import com.azure.core.http.policy.RetryOptions;
import com.azure.core.util.BinaryData;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobContainerClientBuilder;
import com.azure.storage.blob.BlobServiceClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobStorageException;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.common.StorageSharedKeyCredential;
import java.io.BufferedReader;
import java.time.Duration;
import java.time.OffsetDateTime;
import java.util.ArrayList;
import java.util.List;
import java.util.UUID;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.junit.jupiter.api.function.Executable;

/** What every test needs: clients of the server under test, fresh containers, and what the server said. */
final class Server {
    static final String ENDPOINT =
        System.getenv().getOrDefault("PARTITA_BLOB_ENDPOINT", "http://127.0.0.1:10000/devstoreaccount1").replaceAll("/$", "");
    static final String ACCOUNT = "devstoreaccount1";
    static final String KEY = "Eby8vdM02xNOcqFlqUwJPLlmEtlCDXJ1OUzFT50uSRZ6IFsuFq2UVErCz4I6tq/K1SZFPTOtr/KBHBeksoGMGw==";
    static final StorageSharedKeyCredential CREDENTIAL = new StorageSharedKeyCredential(ACCOUNT, KEY);
    static final String DIGITS = "0123456789";
    static final int MIB = 1024 * 1024;

    /** What a test does in a container of its own. */
    interface Act {
        void in(BlobContainerClient container) throws Exception;
    }

    /** What a test does with a block blob of ten bytes. */
    interface ActOnBlob {
        void on(BlobClient blob, BlobContainerClient container) throws Exception;
    }

    /** What a test does with a server of its own. */
    interface ActOnService {
        void with(BlobServiceClient service) throws Exception;
    }

    /** A builder without retries: a retry would hide a wrong answer. */
    static BlobServiceClientBuilder builder(String endpoint) {
        return new BlobServiceClientBuilder().endpoint(endpoint).retryOptions(new RetryOptions(new FixedDelayOptions(0, Duration.ofMillis(1))));
    }

    static BlobServiceClient service() {
        return builder(ENDPOINT).credential(CREDENTIAL).buildClient();
    }

    static BlobServiceClient serviceWith(String token) {
        return builder(ENDPOINT).sasToken(token).buildClient();
    }

    /** A client of a container without a key or a token. */
    static BlobContainerClient stranger(BlobContainerClient container) {
        return new BlobContainerClientBuilder().endpoint(ENDPOINT).containerName(container.getBlobContainerName()).buildClient();
    }

    static String fresh() {
        return "java-" + UUID.randomUUID();
    }

    static void withContainer(BlobServiceClient service, Act act) throws Exception {
        BlobContainerClient container = service.createBlobContainer(fresh());
        try {
            act.in(container);
        } finally {
            container.deleteIfExists();
        }
    }

    static void withContainer(Act act) throws Exception {
        withContainer(service(), act);
    }

    static void withBlob(ActOnBlob act) throws Exception {
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("blob");
            put(blob, DIGITS);
            act.on(blob, container);
        });
    }

    /** A server whose properties no other test depends on. */
    static void withServer(ActOnService act) throws Exception {
        String binary = System.getenv("PARTITA_BINARY");
        assumeTrue(binary != null && !binary.isEmpty(), "PARTITA_BINARY names no server to start");
        Process server = new ProcessBuilder(binary, "serve", "--listen", "127.0.0.1:0", "--in-memory", "--log-level", "error")
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try {
            BufferedReader output = server.inputReader();
            for (String line = output.readLine(); line != null; line = output.readLine()) {
                Matcher found = Pattern.compile("BlobEndpoint=(http:[^;]+)").matcher(line);
                if (found.find()) {
                    act.with(builder(found.group(1)).credential(CREDENTIAL).buildClient());
                    return;
                }
            }
            fail("the server did not start");
        } finally {
            server.destroy();
        }
    }

    static void put(BlobClient blob, String text) {
        blob.upload(BinaryData.fromString(text), true);
    }

    static String content(BlobClientBase blob) {
        return blob.downloadContent().toString();
    }

    static List<String> names(Iterable<BlobItem> items) {
        List<String> names = new ArrayList<>();
        items.forEach(item -> names.add(item.getName()));
        return names;
    }

    static OffsetDateTime hours(double count) {
        return OffsetDateTime.now().plusSeconds((long) (count * 3600));
    }

    /** The address of a blob with a token of its own. */
    static String signed(BlobClientBase blob) {
        String token = blob.generateSas(new BlobServiceSasSignatureValues(hours(1), BlobSasPermission.parse("r")));
        return blob.getBlobUrl() + "?" + token;
    }

    /** Demands the SDK's exception with this status and the service's code. */
    static BlobStorageException refused(int status, String code, Executable act) {
        BlobStorageException refusal = assertThrows(BlobStorageException.class, act);
        assertEquals(status + " " + code, refusal.getStatusCode() + " " + refusal.getErrorCode());
        return refusal;
    }

    private Server() {
    }
}
