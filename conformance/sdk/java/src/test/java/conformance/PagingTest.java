package conformance;

import static conformance.Server.entity;
import static conformance.Server.fresh;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.azure.core.http.rest.PagedResponse;
import com.azure.core.util.Context;
import com.azure.data.tables.TableClient;
import com.azure.data.tables.models.ListEntitiesOptions;
import com.azure.data.tables.models.TableEntity;
import com.azure.data.tables.models.TableTransactionAction;
import com.azure.data.tables.models.TableTransactionActionType;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.stream.Stream;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class PagingTest extends WithTable {
    private final List<String> all = new ArrayList<>();

    @BeforeAll
    void fill() {
        for (int p = 0; p < 25; p++) {
            List<TableTransactionAction> actions = new ArrayList<>();
            for (int r = 0; r < 100; r++) {
                TableEntity entity = entity(String.format("p%02d", p), String.format("r%02d", r));
                actions.add(new TableTransactionAction(TableTransactionActionType.CREATE, entity));
                all.add(key(entity));
            }
            table.submitTransaction(actions);
        }
    }

    private static String key(TableEntity entity) {
        return entity.getPartitionKey() + "/" + entity.getRowKey();
    }

    private static Stream<PagedResponse<TableEntity>> pages(TableClient table, ListEntitiesOptions options, String token) {
        var listing = table.listEntities(options, null, Context.NONE);
        return token == null ? listing.streamByPage() : listing.streamByPage(token);
    }

    private static List<List<String>> keys(Stream<PagedResponse<TableEntity>> pages) {
        return pages.map(page -> page.getValue().stream().map(PagingTest::key).toList()).toList();
    }

    private static List<String> flat(List<List<String>> pages) {
        return pages.stream().flatMap(List::stream).toList();
    }

    private static ListEntitiesOptions by(int size) {
        return new ListEntitiesOptions().setTop(size);
    }

    @Test
    void aFullPageIsAThousand() {
        List<List<String>> pages = keys(pages(table, new ListEntitiesOptions(), null));
        assertEquals(List.of(1000, 1000, 500), pages.stream().map(List::size).toList());
        assertEquals(all, flat(pages));
    }

    @Test
    void pagesOfSevenLoseAndRepeatNothing() {
        List<List<String>> pages = keys(pages(table, by(7), null));
        assertEquals(7, Collections.max(pages.stream().map(List::size).toList()));
        assertEquals(all, flat(pages));
    }

    @Test
    void noPageFollowsAnExactEnd() {
        assertEquals(Collections.nCopies(5, 500), keys(pages(table, by(500), null)).stream().map(List::size).toList());
    }

    @Test
    void tokenResumesInAnotherClient() {
        PagedResponse<TableEntity> first = table.listEntities(by(150), null, Context.NONE).iterableByPage().iterator().next();
        assertEquals(150, first.getValue().size()); // page size is $top
        TableClient other = Server.service().getTableClient(table.getTableName());
        assertEquals(all.subList(150, 2500), flat(keys(pages(other, by(150), first.getContinuationToken()))));
    }

    @Test
    void tokenKeepsToItsFilter() {
        String filter = "PartitionKey ge 'p03' and PartitionKey lt 'p06' and RowKey ge 'r90'";
        List<String> expected = all.stream().filter(k -> k.matches("p0[345]/r9.")).toList();
        assertEquals(expected, flat(keys(pages(table, by(7).setFilter(filter), null))));
    }

    @ParameterizedTest
    @ValueSource(strings = { "", "o'clock", "a+b&c", "a;b", "日本語", "😀", "100%" })
    void tokenCarriesAnyKey(String key) {
        TableClient small = service.createTable(fresh());
        List<TableEntity> rows = List.of(entity(key, "1"), entity(key, "2"), entity(key + "x", key));
        rows.forEach(small::createEntity);
        assertEquals(rows.stream().map(PagingTest::key).toList(), flat(keys(pages(small, by(1), null))));
        small.deleteTable();
    }
}
