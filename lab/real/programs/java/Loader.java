import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.TimeUnit;

/**
 * Loads records in a pool of one thread: "good" loads one. "bad" loads one that ends the program from within its
 * task, while the thread that runs as the program ends waits for the pool's tasks.
 */
public class Loader {
    static final ExecutorService POOL =
            Executors.newFixedThreadPool(1, task -> new Thread(task, "loader"));

    static void load(String record) {
        if (record.equals("bad")) {
            System.exit(2);
        }
    }

    static void closeDown() {
        POOL.shutdown();
        try {
            POOL.awaitTermination(1, TimeUnit.HOURS);
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(Loader::closeDown, "close-down"));
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String record = line;
            long begin = System.nanoTime();
            if (record.equals("bad")) {
                System.out.println(begin);
            }
            POOL.submit(() -> load(record)).get();
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
