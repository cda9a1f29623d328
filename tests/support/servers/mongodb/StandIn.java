import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.h2.H2Backend;
import de.bwaldvogel.mongo.bson.Document;
import de.bwaldvogel.mongo.wire.message.MongoMessage;
import java.io.File;
import java.util.List;
import java.util.Set;
import org.h2.mvstore.MVStore;
import org.h2.mvstore.MVStoreTool;

/**
 * A server of MongoDB's protocol on loopback: {@code java StandIn PORT [FILE]}. Without a file it keeps its documents in memory. With one,
 * a write is in the file before it is acknowledged, so a killed server loses none; it is not flushed to the disk, so a power cut may.
 * As MongoDB does, it ends when it cannot write its file, because the disk is full for example.
 */
public final class StandIn extends H2Backend {
    private static final Set<String> READING =
            Set.of("hello", "ismaster", "ping", "buildinfo", "find", "getmore", "aggregate", "count", "distinct", "killcursors", "endsessions");

    /** The driver refuses versions before 4.4, and the library's own end at 5.0 with the protocol of 4.2. */
    private enum Version implements MongoVersion {
        MONGO_4_4;

        @Override
        public List<Integer> getVersionArray() {
            return List.of(4, 4, 0);
        }

        @Override
        public int getWireVersion() {
            return 9;
        }
    }

    private final MVStore store;

    private StandIn(MVStore store) {
        super(store);
        this.store = store;
    }

    @Override
    public Document handleMessage(MongoMessage message) {
        Document command = message.getDocument();
        String name = command.keySet().iterator().next().toLowerCase();
        if (READING.contains(name)) return named(super.handleMessage(message));
        if (name.equals("createindexes")) makeSparse(command);
        synchronized (this) { // a commit beside another write would store half of it: the entry in an index, and no document
            try {
                Document answer = super.handleMessage(message);
                commit();
                return answer;
            } finally {
                if (store.isClosed()) Runtime.getRuntime().halt(1); // by itself, when a write failed: the file lacks what memory has
            }
        }
    }

    /** With {@code -Dferretdb=VERSION} it reports that it is FerretDB. */
    private static Document named(Document answer) {
        String version = System.getProperty("ferretdb");
        return version == null ? answer : answer.append("ferretdbVersion", version);
    }

    /** The library knows no partial indexes. Where the condition is that the fields are there, a sparse one is the same. */
    private static void makeSparse(Document command) {
        for (Object each : (Iterable<?>) command.get("indexes"))
            if (each instanceof Document index && Boolean.TRUE.equals(index.get("unique")) && index.containsKey("partialFilterExpression"))
                index.append("sparse", true);
    }

    public static void main(String[] arguments) {
        var file = arguments.length > 1 ? arguments[1] : null;
        if (file != null && new File(file).exists()) MVStoreTool.compact(file, false); // it grows with each commit
        MVStore store = new MVStore.Builder().fileName(file).autoCommitDisabled().open();
        store.setRetentionTime(0); // reuse space at once: nothing but a power cut changes the order of writes
        new MongoServer(new StandIn(store).version(Version.MONGO_4_4)).bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }
}
