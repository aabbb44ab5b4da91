import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;

/**
 * Sorts parcels: two threads of a pool take them from a queue that has room for four. Each line of
 * stdin is a parcel, by how long it takes to weigh, s; "many S" are eight of them.
 */
public class Parcels {
    private static final LinkedBlockingQueue<Double> belt = new LinkedBlockingQueue<>(4);
    private static volatile double sink;

    static double weighParcel(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        double weight = 1.0;
        do {
            for (int step = 0; step < 1000; step++) {
                weight = Math.sqrt(weight * 3.7 + step);
            }
        } while (System.nanoTime() < end);
        return weight;
    }

    static void takeParcels() {
        try {
            while (true) {
                sink = weighParcel(belt.take());
            }
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool = Executors.newFixedThreadPool(2, task -> {
            Thread thread = new Thread(task, "scales");
            thread.setDaemon(true);
            return thread;
        });
        pool.submit(Parcels::takeParcels);
        pool.submit(Parcels::takeParcels);
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            double seconds = Double.parseDouble(words[words.length - 1]);
            long begin = System.nanoTime();
            for (int n = words.length > 1 ? 7 : 1; n > 0; n--) {
                belt.put(seconds);
            }
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
