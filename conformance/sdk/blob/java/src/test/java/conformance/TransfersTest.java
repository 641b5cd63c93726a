package conformance;

import static conformance.Server.DIGITS;
import static conformance.Server.MIB;
import static conformance.Server.content;
import static conformance.Server.put;
import static conformance.Server.refused;
import static conformance.Server.signed;
import static conformance.Server.withBlob;
import static conformance.Server.withContainer;
import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertFalse;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.azure.core.util.BinaryData;
import com.azure.core.util.Context;
import com.azure.storage.blob.BlobClient;
import com.azure.storage.blob.models.AccessTier;
import com.azure.storage.blob.models.BlobDownloadContentResponse;
import com.azure.storage.blob.models.BlobHttpHeaders;
import com.azure.storage.blob.models.BlobProperties;
import com.azure.storage.blob.models.BlobRange;
import com.azure.storage.blob.models.BlobType;
import com.azure.storage.blob.models.Block;
import com.azure.storage.blob.models.BlockListType;
import com.azure.storage.blob.models.BlockBlobItem;
import com.azure.storage.blob.models.ParallelTransferOptions;
import com.azure.storage.blob.options.BlobParallelUploadOptions;
import com.azure.storage.blob.specialized.BlobInputStream;
import com.azure.storage.blob.specialized.BlobOutputStream;
import com.azure.storage.blob.specialized.BlockBlobClient;
import java.io.ByteArrayInputStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.MessageDigest;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import java.util.Random;
import java.util.concurrent.ConcurrentHashMap;
import java.util.stream.IntStream;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.io.TempDir;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

/** Block blobs: what is uploaded comes back, in one request or in blocks, from bytes, files and streams; downloads. */
class TransfersTest {
    private static byte[] random(int size) {
        byte[] data = new byte[size];
        new Random(size).nextBytes(data);
        return data;
    }

    private static byte[] md5(byte[] data) throws Exception {
        return MessageDigest.getInstance("MD5").digest(data);
    }

    @ParameterizedTest
    @ValueSource(ints = {0, 1, 4096, 4097, MIB, 4 * MIB, 4 * MIB + 1})
    void sizes(int size) throws Exception {
        byte[] data = random(size);
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("a");
            blob.upload(BinaryData.fromBytes(data));
            assertArrayEquals(data, blob.downloadContent().toBytes());
            BlobProperties found = blob.getProperties();
            assertEquals(size, found.getBlobSize());
            assertEquals(BlobType.BLOCK_BLOB, found.getBlobType());
            assertArrayEquals(md5(data), found.getContentMd5());
        });
    }

    @Test
    void inParallelBlocks(@TempDir Path folder) throws Exception {
        byte[] data = random(9 * MIB + 5);
        ParallelTransferOptions parts = new ParallelTransferOptions().setBlockSizeLong((long) MIB).setMaxSingleUploadSizeLong((long) MIB).setMaxConcurrency(5);
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("a");
            blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromBytes(data)).setParallelTransferOptions(parts), null, Context.NONE);
            List<Integer> sizes = blob.getBlockBlobClient().listBlocks(BlockListType.ALL).getCommittedBlocks().stream().map(one -> (int) one.getSizeLong()).toList();
            assertEquals(10, sizes.size());
            String path = folder.resolve("out").toString();
            blob.downloadToFileWithResponse(path, null, parts, null, null, true, null, Context.NONE);
            assertArrayEquals(data, Files.readAllBytes(Path.of(path)));
            blob.uploadFromFile(path, true);
            assertArrayEquals(data, blob.downloadContent().toBytes());
        });
    }

    @Test
    void streams() throws Exception {
        byte[] data = random(2 * MIB + 3);
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("a");
            try (BlobOutputStream stream = blob.getBlockBlobClient().getBlobOutputStream(true)) {
                for (int start = 0; start < data.length; start += 100_000) {
                    stream.write(data, start, Math.min(100_000, data.length - start));
                }
            }
            try (BlobInputStream stream = blob.openInputStream()) {
                assertArrayEquals(data, stream.readAllBytes());
            }
            blob.upload(new ByteArrayInputStream(data), true);
            assertArrayEquals(data, blob.downloadContent().toBytes());
        });
    }

    @Test
    void anUploadOverwritesOnlyIfAsked() throws Exception {
        withBlob((blob, container) -> {
            refused(409, "BlobAlreadyExists", () -> blob.upload(BinaryData.fromString("new")));
            assertEquals(DIGITS, content(blob));
            blob.upload(BinaryData.fromString("new"), true);
            assertEquals("new", content(blob));
        });
    }

    @Test
    void whatComesWithAnUpload() throws Exception {
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("a");
            BlobHttpHeaders headers = new BlobHttpHeaders().setContentType("text/html").setCacheControl("no-cache").setContentLanguage("de")
                .setContentDisposition("attachment").setContentEncoding("gzip");
            blob.uploadWithResponse(new BlobParallelUploadOptions(BinaryData.fromString("abc")).setHeaders(headers).setMetadata(Map.of("Key", "Value"))
                .setTags(Map.of("t", "1")).setTier(AccessTier.COOL), null, Context.NONE);
            BlobProperties found = blob.getProperties();
            assertEquals(List.of("text/html", "no-cache", "de", "attachment", "gzip"), List.of(found.getContentType(), found.getCacheControl(),
                found.getContentLanguage(), found.getContentDisposition(), found.getContentEncoding()));
            assertEquals(Map.of("Key", "Value"), found.getMetadata());
            assertEquals(AccessTier.COOL, found.getAccessTier());
            assertEquals(1, found.getTagCount());
            assertEquals(Map.of("t", "1"), blob.getTags());
        });
    }

    @Test
    void fiftyUploadsToOneBlob() throws Exception {
        withContainer(container -> {
            BlockBlobClient blob = container.getBlobClient("one").getBlockBlobClient();
            Map<String, String> written = new ConcurrentHashMap<>();
            List<Thread> uploads = IntStream.range(0, 50).mapToObj(number -> new Thread(() -> {
                String whole = Character.toString('A' + number).repeat(50_000 + number);
                BlockBlobItem answer = blob.upload(BinaryData.fromString(whole), true);
                written.put(answer.getETag(), whole);
            })).toList();
            uploads.forEach(Thread::start);
            for (Thread upload : uploads) {
                upload.join();
            }
            assertEquals(50, written.size());
            assertEquals(written.get(blob.getProperties().getETag()), content(blob));
        });
    }

    private static String id(int number) {
        return Base64.getEncoder().encodeToString(String.format("block-%05d", number).getBytes(StandardCharsets.UTF_8));
    }

    private static void stage(BlockBlobClient blob, int... numbers) {
        for (int number : numbers) {
            blob.stageBlock(id(number), BinaryData.fromString(number + ";"));
        }
    }

    @Test
    void blocks() throws Exception {
        withContainer(container -> {
            BlockBlobClient blob = container.getBlobClient("a").getBlockBlobClient();
            stage(blob, 1, 2, 3);
            refused(404, "BlobNotFound", () -> content(blob));
            refused(400, "InvalidBlockList", () -> blob.commitBlockList(List.of(id(1), id(4))));
            blob.commitBlockList(List.of(id(3), id(1), id(1)));
            assertEquals("3;1;1;", content(blob));
            stage(blob, 4);
            assertEquals(List.of(id(3), id(1), id(1)), blob.listBlocks(BlockListType.ALL).getCommittedBlocks().stream().map(Block::getName).toList());
            assertEquals(List.of(id(4)), blob.listBlocks(BlockListType.ALL).getUncommittedBlocks().stream().map(Block::getName).toList());
            blob.commitBlockList(List.of(id(1), id(4)), true);
            assertEquals("1;4;", content(blob));
        });
    }

    @Test
    void damagedContent() throws Exception {
        withContainer(container -> {
            BlockBlobClient blob = container.getBlobClient("a").getBlockBlobClient();
            byte[] wrong = md5(new byte[0]);
            refused(400, "Md5Mismatch", () -> blob.stageBlockWithResponse(id(1), new ByteArrayInputStream(new byte[1]), 1, wrong, null, null, Context.NONE));
        });
    }

    @Test
    void fromUrls() throws Exception {
        withBlob((source, container) -> {
            BlockBlobClient blob = container.getBlobClient("joined").getBlockBlobClient();
            blob.stageBlockFromUrl(id(1), signed(source), new BlobRange(2, 3L));
            blob.stageBlockFromUrl(id(2), signed(source), null);
            blob.commitBlockList(List.of(id(1), id(2)));
            assertEquals("234" + DIGITS, content(blob));
            BlockBlobClient copy = container.getBlobClient("copy").getBlockBlobClient();
            copy.uploadFromUrl(signed(source));
            assertEquals(DIGITS, content(copy));
        });
    }

    private static String range(BlobClient blob, long offset, Long count) {
        return blob.downloadContentWithResponse(null, null, new BlobRange(offset, count), false, null, Context.NONE).getValue().toString();
    }

    @Test
    void ranges() throws Exception {
        withBlob((blob, container) -> {
            assertEquals(List.of("0", "9", "3456", "456789", "89", DIGITS), List.of(range(blob, 0, 1L), range(blob, 9, 1L), range(blob, 3, 4L),
                range(blob, 4, null), range(blob, 8, 100L), range(blob, 0, 10L)));
            refused(416, "InvalidRange", () -> range(blob, 10, 1L));
            BlobDownloadContentResponse answer = blob.downloadContentWithResponse(null, null, new BlobRange(2, 3L), true, null, Context.NONE);
            assertArrayEquals(md5("234".getBytes(StandardCharsets.UTF_8)), answer.getDeserializedHeaders().getContentMd5());
        });
    }

    @Test
    void aMissingBlob() throws Exception {
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("missing");
            assertFalse(blob.exists());
            assertFalse(blob.deleteIfExists());
            refused(404, "BlobNotFound", () -> content(blob));
            refused(404, "BlobNotFound", blob::getProperties);
            refused(404, "BlobNotFound", blob::delete);
        });
    }

    @Test
    void unusualNames() throws Exception {
        List<String> unusual = List.of("a b  c", "a//b/", "100%", "a%20b%2Fc", "a+b", "a?b=c&d", "a#b", "a'b\"c", "<a>&amp;</a>", "[a]{b}(c)|^`~",
            "!@$*,;:=-_.", "日本語/ñ ß Ω", "👩‍👩‍👧 😀", "é", "e\u0301", "a.b..c", "a".repeat(1024), "comp=list");
        withContainer(container -> {
            unusual.forEach(name -> put(container.getBlobClient(name), name));
            unusual.forEach(name -> assertEquals(name, content(container.getBlobClient(name))));
            assertEquals(unusual.stream().sorted().toList(), Server.names(container.listBlobs()).stream().sorted().toList());
        });
    }

    @Test
    void anEmptyBlobHasNoRange() throws Exception {
        withContainer(container -> {
            BlobClient blob = container.getBlobClient("a");
            put(blob, "");
            assertEquals("", content(blob));
            try (BlobInputStream stream = blob.openInputStream()) {
                assertEquals(-1, stream.read());
            }
            assertTrue(blob.exists());
            assertNull(blob.getProperties().getCopyId());
        });
    }
}
