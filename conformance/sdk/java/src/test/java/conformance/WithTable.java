package conformance;

import com.azure.data.tables.TableClient;
import com.azure.data.tables.TableServiceClient;
import org.junit.jupiter.api.AfterAll;
import org.junit.jupiter.api.BeforeAll;
import org.junit.jupiter.api.TestInstance;

/** One table for a class of tests; each of them keeps to a partition of its own. */
@TestInstance(TestInstance.Lifecycle.PER_CLASS)
abstract class WithTable {
    final TableServiceClient service = Server.service();
    TableClient table;

    @BeforeAll
    void create() {
        table = service.createTable(Server.fresh());
    }

    @AfterAll
    void delete() {
        table.deleteTable();
    }
}
