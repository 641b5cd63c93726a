package conformance;

import static conformance.Server.content;
import static conformance.Server.fresh;
import static conformance.Server.hours;
import static conformance.Server.names;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.service;
import static conformance.Server.withBlob;
import static conformance.Server.withContainer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobContainerClient;
import com.azure.storage.blob.batch.BlobBatchClient;
import com.azure.storage.blob.batch.BlobBatchClientBuilder;
import com.azure.storage.blob.batch.BlobBatchStorageException;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobAccessPolicy;
import com.azure.storage.blob.models.BlobContainerItem;
import com.azure.storage.blob.models.BlobItem;
import com.azure.storage.blob.models.BlobListDetails;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.BlobSignedIdentifier;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.LeaseDurationType;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.ListBlobContainersOptions;
import com.azure.storage.blob.models.ListBlobsOptions;
import com.azure.storage.blob.models.PublicAccessType;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import java.util.ArrayList;
import java.util.Base64;
import java.io.ByteArrayInputStream;
import java.util.List;
import java.util.Map;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Assertions;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Containers: made once, listed in order and in pages, with metadata, policies and leases; lists of blobs; batches. */
class ContainersTest {
    @Test
    void aContainerIsMadeAndDeleted() {
        BlobContainerClient container = service().getBlobContainerClient(fresh());
        assertFalse(container.exists());
        assertTrue(container.createIfNotExists());
        assertFalse(container.createIfNotExists());
        refused(409, "ContainerAlreadyExists", container::create);
        assertTrue(container.deleteIfExists());
        assertFalse(container.deleteIfExists());
        refused(404, "ContainerNotFound", container::delete);
    }

    @ParameterizedTest
    @ValueSource(strings = {"a_b", "-ab", "a--b", "Abc", "abc-"})
    void namesAreRefused(String name) {
        refused(400, "InvalidResourceName", () -> service().createBlobContainer(name));
    }

    @Test
    void metadataAndProperties() throws Exception {
        withContainer(container -> {
            container.setMetadata(Map.of("Hello", "World"));
            assertEquals(Map.of("Hello", "World"), container.getProperties().getMetadata());
            container.setMetadata(Map.of("other", "1"));
            assertEquals(Map.of("other", "1"), container.getProperties().getMetadata());
            assertEquals(LeaseStateType.AVAILABLE, container.getProperties().getLeaseState());
            assertNull(container.getProperties().getBlobPublicAccess());
        });
    }

    @Test
    void containersAreListedInPages() {
        String prefix = fresh().substring(0, 30);
        IntStream.range(0, 5).forEach(number -> service().createBlobContainer(prefix + number));
        List<Integer> sizes = new ArrayList<>();
        List<String> found = new ArrayList<>();
        ListBlobContainersOptions options = new ListBlobContainersOptions().setPrefix(prefix).setMaxResultsPerPage(2);
        for (PagedResponse<BlobContainerItem> page : service().listBlobContainers(options, null).iterableByPage()) {
            sizes.add(page.getValue().size());
            page.getValue().forEach(item -> found.add(item.getName()));
        }
        assertEquals(List.of(2, 2, 1), sizes);
        assertEquals(IntStream.range(0, 5).mapToObj(number -> prefix + number).toList(), found);
        found.forEach(name -> service().deleteBlobContainer(name));
    }

    @Test
    void policiesComeBack() throws Exception {
        withContainer(container -> {
            BlobAccessPolicy policy = new BlobAccessPolicy().setPermissions("racwdl").setStartsOn(hours(-2)).setExpiresOn(hours(2));
            container.setAccessPolicy(null, List.of(new BlobSignedIdentifier().setId("whole").setAccessPolicy(policy)));
            List<BlobSignedIdentifier> found = container.getAccessPolicy().getIdentifiers();
            assertEquals(List.of("whole", "racwdl"), List.of(found.get(0).getId(), found.get(0).getAccessPolicy().getPermissions()));
            assertEquals(policy.getExpiresOn().toEpochSecond(), found.get(0).getAccessPolicy().getExpiresOn().toEpochSecond());
        });
    }

    @Test
    void publicAccess() throws Exception {
        withBlob((blob, container) -> {
            BlobContainerClient stranger = Server.stranger(container);
            refused(401, "NoAuthenticationInformation", () -> content(stranger.getBlobClient("blob")));
            refused(401, "NoAuthenticationInformation", () -> names(stranger.listBlobs()));
            container.setAccessPolicy(PublicAccessType.CONTAINER, null);
            assertEquals(PublicAccessType.CONTAINER, container.getProperties().getBlobPublicAccess());
            refused(409, "PublicAccessNotPermitted", () -> content(stranger.getBlobClient("blob"))); // the operator did not allow it
        });
    }

    @Test
    void aLeaseGuardsDeletion() throws Exception {
        withContainer(container -> {
            BlobLeaseClient lease = new BlobLeaseClientBuilder().containerClient(container).buildClient();
            lease.acquireLease(-1);
            assertEquals(LeaseDurationType.INFINITE, container.getProperties().getLeaseDuration());
            refused(412, "LeaseIdMissing", container::delete);
            container.deleteWithResponse(new BlobRequestConditions().setLeaseId(lease.getLeaseId()), null, Context.NONE);
        });
    }

    // In the order of the service: by the bytes of the UTF-8 form.
    private static final List<String> NAMES = List.of("A", "a", "a b", "a%2Fb", "a+b", "a-b", "a/", "a//b", "a/b", "a/b/c", "a0", "b", "ä", "日本", "😀");

    @Test
    void listsOfBlobs() throws Exception {
        withContainer(container -> {
            NAMES.forEach(name -> put(container.getBlobClient(name), name));
            assertEquals(NAMES, names(container.listBlobs()));
            assertEquals(NAMES, names(container.listBlobs(new ListBlobsOptions().setMaxResultsPerPage(4), null)));
            assertEquals(List.of("a/", "a//b", "a/b", "a/b/c"), names(container.listBlobs(new ListBlobsOptions().setPrefix("a/"), null)));
            for (Integer size : new Integer[] {null, 1, 3}) {
                ListBlobsOptions options = new ListBlobsOptions().setPrefix("a/").setMaxResultsPerPage(size);
                List<String> found = new ArrayList<>();
                for (BlobItem item : container.listBlobsByHierarchy("/", options, null)) {
                    found.add(item.getName() + (Boolean.TRUE.equals(item.isPrefix()) ? " folder" : ""));
                }
                assertEquals(List.of("a/", "a// folder", "a/b", "a/b/ folder"), found.stream().sorted().toList());
            }
        });
    }

    @Test
    void whatIsIncluded() throws Exception {
        withBlob((blob, container) -> {
            blob.setMetadata(Map.of("Key", "Value"));
            blob.setTags(Map.of("t", "1"));
            blob.createSnapshot();
            container.getBlobClient("copy").beginCopy(blob.getBlobUrl(), null).waitForCompletion();
            byte[] staged = {1};
            container.getBlobClient("staged").getBlockBlobClient()
                .stageBlock(Base64.getEncoder().encodeToString(staged), new ByteArrayInputStream(staged), 1);
            List<BlobItem> plain = container.listBlobs().stream().toList();
            assertEquals(List.of("blob", "copy"), plain.stream().map(BlobItem::getName).toList());
            assertNull(plain.get(0).getMetadata());
            BlobListDetails everything = new BlobListDetails().setRetrieveMetadata(true).setRetrieveTags(true).setRetrieveSnapshots(true)
                .setRetrieveCopy(true).setRetrieveUncommittedBlobs(true).setRetrieveDeletedBlobs(true);
            ListBlobsOptions options = new ListBlobsOptions().setDetails(everything).setMaxResultsPerPage(1);
            List<BlobItem> found = container.listBlobs(options, null).stream().toList();
            assertEquals(List.of("blob", "blob", "copy", "staged"), found.stream().map(BlobItem::getName).toList());
            assertTrue(found.get(0).getSnapshot() != null && found.get(1).getSnapshot() == null);
            assertEquals(Map.of("Key", "Value"), found.get(1).getMetadata());
            assertEquals(Map.of("t", "1"), found.get(1).getTags());
            assertEquals(blob.getBlobUrl(), found.get(2).getProperties().getCopySource());
            assertEquals(10, found.get(2).getProperties().getContentLength());
        });
    }

    @Test
    void batches() throws Exception {
        withContainer(container -> {
            List.of("a", "b ü", "c/d").forEach(name -> put(container.getBlobClient(name), name));
            BlobBatchClient batch = new BlobBatchClientBuilder(container).buildClient();
            batch.setBlobsAccessTier(List.of(container.getBlobClient("b ü").getBlobUrl()), AccessTier.COOL).forEach(one -> assertEquals(200, one.getStatusCode()));
            List<String> urls = List.of("a", "missing", "c/d").stream().map(name -> container.getBlobClient(name).getBlobUrl()).toList();
            BlobBatchStorageException failed = Assertions.assertThrows(BlobBatchStorageException.class,
                () -> batch.deleteBlobs(urls, DeleteSnapshotsOptionType.INCLUDE).forEach(one -> { }));
            failed.getBatchExceptions().forEach(one -> assertEquals("404 BlobNotFound", one.getStatusCode() + " " + one.getErrorCode()));
            List<BlobItem> left = container.listBlobs().stream().toList();
            assertEquals(List.of("b ü"), left.stream().map(BlobItem::getName).toList());
            assertEquals(AccessTier.COOL, left.get(0).getProperties().getAccessTier());
        });
    }
}
