// A Java service that has nothing to do: pools of threads that wait for work, and a heartbeat once a
// second. Each heartbeat prints when it was due and when it was over (CLOCK_MONOTONIC, ns).
import java.util.concurrent.Executors;
import java.util.concurrent.ScheduledExecutorService;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.TimeUnit;

public class OrdIdle {
    static long due;

    static void beat() {
        System.out.println(due + " " + System.nanoTime());
        due += 1_000_000_000L;
    }

    public static void main(String[] words) throws Exception {
        ExecutorService workers = Executors.newFixedThreadPool(8);
        for (int n = 0; n < 64; n++) {
            workers.submit(() -> Math.sqrt(System.nanoTime()));
        }
        ScheduledExecutorService clock = Executors.newScheduledThreadPool(2);
        due = System.nanoTime() + 1_000_000_000L;
        clock.scheduleAtFixedRate(OrdIdle::beat, 1, 1, TimeUnit.SECONDS);
        Thread.currentThread().join();
    }
}
