package conformance;

import static conformance.Server.ACCOUNT;
import static conformance.Server.DIGITS;
import static conformance.Server.ENDPOINT;
import static conformance.Server.KEY;
import static conformance.Server.content;
import static conformance.Server.hours;
import static conformance.Server.names;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.service;
import static conformance.Server.serviceWith;
import static conformance.Server.withBlob;
import static conformance.Server.withContainer;
import static conformance.Server.withServer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertTrue;
import static org.junit.jupiter.api.DynamicTest.dynamicTest;

import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.BlobServiceClientBuilder;
import com.azure.storage.blob.models.AccountKind;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobCorsRule;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobMetrics;
import com.azure.storage.blob.models.BlobRetentionPolicy;
import com.azure.storage.blob.models.BlobServiceProperties;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.StaticWebsite;
import com.azure.storage.blob.sas.BlobContainerSasPermission;
import com.azure.storage.blob.sas.BlobSasPermission;
import com.azure.storage.blob.sas.BlobServiceSasSignatureValues;
import com.azure.storage.common.StorageSharedKeyCredential;
import com.azure.storage.common.sas.AccountSasPermission;
import com.azure.storage.common.sas.AccountSasResourceType;
import com.azure.storage.common.sas.AccountSasService;
import com.azure.storage.common.sas.AccountSasSignatureValues;
import com.azure.storage.common.sas.SasIpRange;
import java.util.List;
import java.util.Map;
import java.util.function.Consumer;
import java.util.stream.Stream;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

/** Shared access signatures do what they grant and nothing else; the service's properties, soft delete, the account. */
class AccessTest {
    private record Operation(String name, String needs, Consumer<BlobClient> act) {
    }

    private static final List<Operation> OPERATIONS = List.of(
        new Operation("download", "r", Server::content),
        new Operation("overwrite", "w", blob -> put(blob, "new")),
        new Operation("metadata", "w", blob -> blob.setMetadata(Map.of("a", "1"))),
        new Operation("get tags", "t", BlobClient::getTags),
        new Operation("set tags", "t", blob -> blob.setTags(Map.of("a", "1"))),
        new Operation("delete", "d", BlobClient::delete));

    private static BlobServiceSasSignatureValues granting(String letters) {
        return new BlobServiceSasSignatureValues(hours(1), BlobSasPermission.parse(letters));
    }

    private static BlobClient holder(BlobClient blob, BlobServiceSasSignatureValues values) {
        return serviceWith(blob.generateSas(values)).getBlobContainerClient(blob.getContainerName()).getBlobClient(blob.getBlobName());
    }

    @TestFactory
    Stream<DynamicTest> whatAnOperationNeeds() {
        return OPERATIONS.stream().map(one -> dynamicTest(one.name(), () -> withBlob((blob, container) -> {
            String others = "rawdt".replace(one.needs(), "");
            refused(403, "AuthorizationPermissionMismatch", () -> one.act().accept(holder(blob, granting(others))));
            refused(403, "AuthenticationFailed", () -> one.act().accept(holder(blob,
                new BlobServiceSasSignatureValues(hours(-0.01), BlobSasPermission.parse(one.needs())))));
            one.act().accept(holder(blob, granting(one.needs())));
        })));
    }

    @Test
    void aTokenIsForItsBlob() throws Exception {
        withBlob((blob, container) -> {
            BlobClient other = container.getBlobClient("other");
            put(other, "1");
            String token = blob.generateSas(granting("r"));
            refused(403, "AuthenticationFailed",
                () -> content(serviceWith(token).getBlobContainerClient(container.getBlobContainerName()).getBlobClient("other")));
            refused(403, "AuthorizationSourceIPMismatch", () -> content(holder(blob, granting("r").setSasIpRange(SasIpRange.parse("203.0.113.1-203.0.113.9")))));
        });
    }

    @Test
    void headersOfTheAnswer() throws Exception {
        withBlob((blob, container) -> {
            BlobClient by = holder(blob, granting("r").setContentType("text/plain").setCacheControl("no-cache").setContentDisposition("attachment; filename=\"a b.txt\""));
            assertEquals(List.of("text/plain", "no-cache", "attachment; filename=\"a b.txt\""),
                List.of(by.getProperties().getContentType(), by.getProperties().getCacheControl(), by.getProperties().getContentDisposition()));
        });
    }

    @Test
    void aTokenOfTheContainer() throws Exception {
        withBlob((blob, container) -> {
            String token = container.generateSas(new BlobServiceSasSignatureValues(hours(1), BlobContainerSasPermission.parse("rl")));
            BlobContainerClient by = serviceWith(token).getBlobContainerClient(container.getBlobContainerName());
            assertEquals(List.of("blob"), names(by.listBlobs()));
            assertEquals(DIGITS, content(by.getBlobClient("blob")));
            refused(403, "AuthorizationPermissionMismatch", () -> by.getBlobClient("blob").delete());
            refused(403, "AuthorizationFailure", by::delete);
        });
    }

    @Test
    void aStoredPolicy() throws Exception {
        withBlob((blob, container) -> {
            String token = container.generateSas(new BlobServiceSasSignatureValues("reader"));
            BlobClient by = serviceWith(token).getBlobContainerClient(container.getBlobContainerName()).getBlobClient("blob");
            refused(403, "AuthenticationFailed", () -> content(by));
            BlobAccessPolicy policy = new BlobAccessPolicy().setPermissions("r").setExpiresOn(hours(1)).setStartsOn(hours(-1));
            container.setAccessPolicy(null, List.of(new BlobSignedIdentifier().setId("reader").setAccessPolicy(policy)));
            assertEquals(DIGITS, content(by));
            container.setAccessPolicy(null, List.of());
            refused(403, "AuthenticationFailed", () -> content(by));
        });
    }

    @Test
    void aTokenOfTheAccount() throws Exception {
        withBlob((blob, container) -> {
            String token = service().generateAccountSas(new AccountSasSignatureValues(hours(1), AccountSasPermission.parse("rl"),
                AccountSasService.parse("b"), AccountSasResourceType.parse("o")));
            BlobContainerClient by = serviceWith(token).getBlobContainerClient(container.getBlobContainerName());
            assertEquals(DIGITS, content(by.getBlobClient("blob")));
            refused(403, "AuthorizationResourceTypeMismatch", () -> names(by.listBlobs()));
            refused(403, "AuthorizationPermissionMismatch", () -> by.getBlobClient("blob").delete());
        });
    }

    @Test
    void propertiesAndSoftDelete() throws Exception {
        withServer(own -> {
            BlobRetentionPolicy week = new BlobRetentionPolicy().setEnabled(true).setDays(7);
            own.setProperties(new BlobServiceProperties().setDeleteRetentionPolicy(week)
                .setHourMetrics(new BlobMetrics().setVersion("1.0").setEnabled(true).setIncludeApis(true).setRetentionPolicy(week))
                .setCors(List.of(new BlobCorsRule().setAllowedOrigins("example.com").setAllowedMethods("GET").setAllowedHeaders("*")
                    .setExposedHeaders("*").setMaxAgeInSeconds(5)))
                .setStaticWebsite(new StaticWebsite().setEnabled(true).setIndexDocument("index.html")));
            BlobServiceProperties found = own.getProperties();
            assertEquals(7, found.getDeleteRetentionPolicy().getDays());
            assertEquals("example.com", found.getCors().get(0).getAllowedOrigins());
            assertEquals("index.html", found.getStaticWebsite().getIndexDocument());
            assertTrue(found.getHourMetrics().isIncludeApis());
            withContainer(own, container -> {
                BlobClient blob = container.getBlobClient("blob");
                put(blob, DIGITS);
                blob.delete();
                assertFalse(blob.exists());
                ListBlobsOptions deleted = new ListBlobsOptions().setDetails(new BlobListDetails().setRetrieveDeletedBlobs(true));
                BlobItem item = container.listBlobs(deleted, null).stream().findFirst().orElseThrow();
                assertTrue(item.isDeleted());
                assertEquals(6, item.getProperties().getRemainingRetentionDays());
                blob.undelete();
                assertEquals(DIGITS, content(blob));
            });
        });
    }

    @Test
    void theAccount() throws Exception {
        assertEquals(AccountKind.STORAGE_V2, service().getAccountInfo().getAccountKind());
        withBlob((blob, container) -> {
            String text = "DefaultEndpointsProtocol=http;AccountName=" + ACCOUNT + ";AccountKey=" + KEY + ";BlobEndpoint=" + ENDPOINT + ";";
            BlobContainerClient by = new BlobServiceClientBuilder().connectionString(text).buildClient().getBlobContainerClient(container.getBlobContainerName());
            assertEquals(DIGITS, content(by.getBlobClient("blob")));
            refused(403, "AuthenticationFailed", () -> content(Server.builder(ENDPOINT).credential(new StorageSharedKeyCredential(ACCOUNT, "d3Jvbmc="))
                .buildClient().getBlobContainerClient(container.getBlobContainerName()).getBlobClient("blob")));
        });
    }
}
