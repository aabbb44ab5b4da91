import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;

/**
 * Prices baskets of options by simulation: each line of its stdin is how long the next one takes, s.
 * A thread of a pool computes; the main thread waits for its Future.
 */
public class Pricing {
    private static double sink;

    static double priceBasket(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        double price = 100.0;
        double sum = 0.0;
        do {
            for (int step = 0; step < 1000; step++) {
                price = Math.abs(price * 1.0001 - step % 7 * 0.01) % 500.0;
                sum += Math.sqrt(price);
            }
        } while (System.nanoTime() < end);
        return sum;
    }

    public static void main(String[] args) throws Exception {
        ExecutorService pool =
                Executors.newSingleThreadExecutor(task -> {
                    Thread thread = new Thread(task, "pricing-1");
                    thread.setDaemon(true);
                    return thread;
                });
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            double seconds = Double.parseDouble(line);
            long begin = System.nanoTime();
            Future<Double> price = pool.submit(() -> priceBasket(seconds));
            sink = price.get();
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
