package conformance;

import static conformance.Server.DIGITS;
import static conformance.Server.content;
import static conformance.Server.fresh;
import static conformance.Server.hours;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.service;
import static conformance.Server.signed;
import static conformance.Server.withBlob;
import static conformance.Server.withContainer;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.AppendBlobRequestConditions;
import com.azure.storage.blob.models.ArchiveStatus;
import com.azure.storage.blob.models.BlobCopyInfo;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobRequestConditions;
import com.azure.storage.blob.models.CopyStatusType;
import com.azure.storage.blob.models.DeleteSnapshotsOptionType;
import com.azure.storage.blob.models.LeaseStateType;
import com.azure.storage.blob.models.PageBlobRequestConditions;
import com.azure.storage.blob.models.PageList;
import com.azure.storage.blob.models.PageRange;
import com.azure.storage.blob.models.SequenceNumberActionType;
import com.azure.storage.blob.models.TaggedBlobItem;
import com.azure.storage.blob.specialized.AppendBlobClient;
import com.azure.storage.blob.specialized.BlobClientBase;
import com.azure.storage.blob.specialized.BlobLeaseClient;
import com.azure.storage.blob.specialized.BlobLeaseClientBuilder;
import com.azure.storage.blob.specialized.PageBlobClient;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.junit.jupiter.api.Test;

/** Properties, metadata, tags, tiers, snapshots, copies, append and page blobs, conditions and leases. */
class BlobsTest {
    @Test
    void propertiesAndMetadata() throws Exception {
        withBlob((blob, container) -> {
            blob.setHttpHeaders(new BlobHttpHeaders().setContentType("text/plain").setCacheControl("no-store"));
            blob.setHttpHeaders(new BlobHttpHeaders().setContentType("text/html"));
            blob.setMetadata(Map.of("Hello", "World", "a1", "1", "a_1", "2"));
            BlobProperties found = blob.getProperties();
            assertEquals("text/html", found.getContentType());
            assertNull(found.getCacheControl());
            assertEquals(Map.of("Hello", "World", "a1", "1", "a_1", "2"), found.getMetadata());
            assertEquals(found.getCreationTime().toLocalDate(), found.getLastModified().toLocalDate());
            refused(400, "InvalidMetadata", () -> blob.setMetadata(Map.of("not-a-name", "1")));
        });
    }

    @Test
    void tags() throws Exception {
        withBlob((blob, container) -> {
            String place = fresh();
            blob.setTags(Map.of("place", place, "number", "5"));
            assertEquals(Map.of("place", place, "number", "5"), blob.getTags());
            String where = "place='" + place + "' AND number > '4'";
            assertEquals(List.of("blob"), service().findBlobsByTags(where).stream().map(TaggedBlobItem::getName).toList());
            assertEquals(List.of(), container.findBlobsByTags("place='" + place + "' AND number > '5'").stream().toList());
            refused(400, "InvalidQueryParameterValue", () -> container.findBlobsByTags("nonsense").stream().toList());
        });
    }

    @Test
    void tiers() throws Exception {
        withBlob((blob, container) -> {
            blob.setAccessTier(AccessTier.COOL);
            assertEquals(AccessTier.COOL, blob.getProperties().getAccessTier());
            blob.setAccessTier(AccessTier.ARCHIVE);
            refused(409, "BlobArchived", () -> content(blob));
            blob.setAccessTier(AccessTier.HOT);
            assertEquals(ArchiveStatus.REHYDRATE_PENDING_TO_HOT, blob.getProperties().getArchiveStatus());
        });
    }

    @Test
    void snapshots() throws Exception {
        withBlob((blob, container) -> {
            BlobClientBase old = blob.createSnapshot();
            put(blob, "new");
            assertEquals(List.of(DIGITS, "new"), List.of(content(old), content(blob)));
            refused(409, "SnapshotsPresent", blob::delete);
            blob.deleteWithResponse(DeleteSnapshotsOptionType.INCLUDE, null, null, Context.NONE);
            refused(404, "BlobNotFound", () -> content(old));
        });
    }

    @Test
    void copies() throws Exception {
        withBlob((blob, container) -> {
            BlobClient copy = container.getBlobClient("copy");
            BlobCopyInfo info = copy.beginCopy(blob.getBlobUrl(), null).waitForCompletion().getValue();
            BlobProperties found = copy.getProperties();
            assertEquals(CopyStatusType.SUCCESS, found.getCopyStatus());
            assertEquals(List.of(info.getCopyId(), "10/10", DIGITS), List.of(found.getCopyId(), found.getCopyProgress(), content(copy)));
            BlobClient other = container.getBlobClient("other");
            other.copyFromUrl(signed(blob));
            assertEquals(DIGITS, content(other));
            refused(409, "NoPendingCopyOperation", () -> copy.abortCopyFromUrl(info.getCopyId()));
        });
    }

    private static ByteArrayInputStream bytes(String text) {
        return new ByteArrayInputStream(text.getBytes(StandardCharsets.UTF_8));
    }

    @Test
    void appendBlobs() throws Exception {
        withBlob((source, container) -> {
            AppendBlobClient log = container.getBlobClient("log").getAppendBlobClient();
            log.create();
            log.appendBlock(bytes("a;"), 2);
            assertEquals("2", log.appendBlock(bytes("b;"), 2).getBlobAppendOffset());
            log.appendBlockFromUrl(signed(source), new BlobRange(0, 3L));
            assertEquals("a;b;012", content(log));
            refused(412, "AppendPositionConditionNotMet", () -> log.appendBlockWithResponse(bytes("x"), 1, null,
                new AppendBlobRequestConditions().setAppendPosition(3L), null, Context.NONE));
            log.seal();
            refused(409, "BlobIsSealed", () -> log.appendBlock(bytes("x"), 1));
            assertEquals(3, log.getProperties().getCommittedBlockCount());
            assertTrue(log.getProperties().isSealed());
            refused(409, "InvalidBlobType", () -> source.getAppendBlobClient().appendBlock(bytes("x"), 1));
        });
    }

    private static PageRange pages(int from, int to) {
        return new PageRange().setStart(from * 512L).setEnd(to * 512L - 1);
    }

    private static String shown(PageList list) {
        StringBuilder all = new StringBuilder();
        list.getPageRange().forEach(one -> all.append("+").append(one.getStart() / 512).append("-").append((one.getEnd() + 1) / 512));
        list.getClearRange().forEach(one -> all.append(" clear ").append(one.getStart() / 512).append("-").append((one.getEnd() + 1) / 512));
        return all.toString();
    }

    @Test
    void pageBlobs() throws Exception {
        withContainer(container -> {
            PageBlobClient disk = container.getBlobClient("disk").getPageBlobClient();
            disk.create(16 * 512);
            disk.uploadPages(pages(0, 4), bytes("a".repeat(4 * 512)));
            String before = disk.createSnapshot().getSnapshotId();
            disk.clearPages(pages(1, 2));
            disk.uploadPages(pages(8, 9), bytes("b".repeat(512)));
            assertEquals("+0-1+2-4+8-9", shown(disk.getPageRanges(new BlobRange(0))));
            assertEquals("+8-9 clear 1-2", shown(disk.getPageRangesDiff(new BlobRange(0), before)));
            assertEquals(3, disk.listPageRanges(new BlobRange(0)).stream().count());
            refused(416, "InvalidPageRange", () -> disk.uploadPages(pages(16, 17), bytes("c".repeat(512))));
            disk.updateSequenceNumber(SequenceNumberActionType.UPDATE, 7L);
            refused(412, "SequenceNumberConditionNotMet", () -> disk.uploadPagesWithResponse(pages(0, 1), bytes("c".repeat(512)), null,
                new PageBlobRequestConditions().setIfSequenceNumberLessThan(7L), null, Context.NONE));
            disk.resize(2 * 512);
            assertEquals(1024, disk.getProperties().getBlobSize());
            assertEquals(7, disk.getProperties().getBlobSequenceNumber());
        });
    }

    private static void unmet(BlobClient blob, BlobRequestConditions conditions, int status) {
        refused(status, "ConditionNotMet", () -> blob.downloadContentWithResponse(null, conditions, null, Context.NONE));
        refused(status, "ConditionNotMet", () -> blob.getPropertiesWithResponse(conditions, null, Context.NONE));
        refused(412, "ConditionNotMet", () -> blob.setMetadataWithResponse(Map.of("a", "1"), conditions, null, Context.NONE));
        refused(412, "ConditionNotMet", () -> blob.deleteWithResponse(null, conditions, null, Context.NONE));
    }

    @Test
    void conditions() throws Exception {
        withBlob((blob, container) -> {
            String etag = blob.getProperties().getETag();
            unmet(blob, new BlobRequestConditions().setIfMatch("\"0x8D000000000000F\""), 412);
            unmet(blob, new BlobRequestConditions().setIfNoneMatch(etag), 304);
            unmet(blob, new BlobRequestConditions().setIfModifiedSince(hours(1)), 304);
            unmet(blob, new BlobRequestConditions().setIfUnmodifiedSince(hours(-1)), 412);
            unmet(blob, new BlobRequestConditions().setTagsConditions("colour='red'"), 412);
            blob.setMetadataWithResponse(Map.of("a", "1"), new BlobRequestConditions().setIfMatch(etag), null, Context.NONE);
            assertEquals(DIGITS, content(blob));
        });
    }

    @Test
    void leases() throws Exception {
        withBlob((blob, container) -> {
            BlobLeaseClient lease = new BlobLeaseClientBuilder().blobClient(blob).buildClient();
            lease.acquireLease(60);
            refused(412, "LeaseIdMissing", () -> put(blob, "new"));
            refused(409, "LeaseAlreadyPresent", () -> new BlobLeaseClientBuilder().blobClient(blob).buildClient().acquireLease(-1));
            blob.getBlockBlobClient().uploadWithResponse(bytes("new"), 3, null, null, null, null,
                new BlobRequestConditions().setLeaseId(lease.getLeaseId()), null, Context.NONE);
            assertEquals("new", content(blob));
            lease.renewLease();
            lease.changeLease("55555555-1111-2222-3333-444444444444");
            lease.breakLeaseWithResponse(0, null, null, Context.NONE);
            assertEquals(LeaseStateType.BROKEN, blob.getProperties().getLeaseState());
            refused(409, "LeaseIsBrokenAndCannotBeRenewed", lease::renewLease);
            lease.releaseLease();
            assertEquals(LeaseStateType.AVAILABLE, blob.getProperties().getLeaseState());
            blob.upload(BinaryData.fromString("free"), true);
        });
    }
}
