import de.bwaldvogel.mongo.MongoServer;
import de.bwaldvogel.mongo.MongoVersion;
import de.bwaldvogel.mongo.backend.memory.MemoryBackend;
import java.util.List;

/** A server of MongoDB's protocol that keeps its documents in memory: {@code java MemoryMongo PORT}, on loopback. */
public final class MemoryMongo {
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

    public static void main(String[] arguments) {
        var server = new MongoServer(new MemoryBackend().version(Version.MONGO_4_4));
        server.bind("127.0.0.1", Integer.parseInt(arguments[0]));
    }
}
