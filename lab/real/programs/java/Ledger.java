import java.io.BufferedReader;
import java.io.InputStreamReader;

/**
 * A ledger that obeys its stdin: "book" enters an amount, "replicate S" has a thread copy it, which
 * waits S seconds for the copy to be confirmed. Both are synchronized on the ledger.
 */
public class Ledger {
    private long total;

    synchronized void book(long amount) {
        total += amount;
    }

    synchronized void replicate(double seconds) throws InterruptedException {
        System.out.println("replicating");
        awaitConfirmation(seconds);
    }

    private void awaitConfirmation(double seconds) throws InterruptedException {
        Thread.sleep((long) (seconds * 1000));
    }

    public static void main(String[] args) throws Exception {
        Ledger ledger = new Ledger();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("replicate")) {
                double seconds = Double.parseDouble(words[1]);
                new Thread(() -> {
                    try {
                        ledger.replicate(seconds);
                    } catch (InterruptedException interrupted) {
                        Thread.currentThread().interrupt();
                    }
                }, "Replicator").start();
                continue;
            }
            long begin = System.nanoTime();
            ledger.book(1);
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
