import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.concurrent.CountDownLatch;

/**
 * Transfers between accounts, each of which is locked for it: "one" makes one, "both" makes two at
 * the same time in opposite directions, which lock the same two accounts in opposite order.
 */
public class Transfers {
    static class Account {
        long balance = 1000;
    }

    /** Locks the one account, and when `locked` is counted down the other. */
    static void transfer(Account from, Account to, CountDownLatch locked) {
        synchronized (from) {
            locked.countDown();
            awaitQuietly(locked);
            synchronized (to) {
                from.balance -= 1;
                to.balance += 1;
            }
        }
    }

    static void awaitQuietly(CountDownLatch latch) {
        try {
            latch.await();
        } catch (InterruptedException interrupted) {
            Thread.currentThread().interrupt();
        }
    }

    public static void main(String[] args) throws Exception {
        Account savings = new Account();
        Account current = new Account();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long begin = System.nanoTime();
            if (line.equals("one")) {
                transfer(savings, current, new CountDownLatch(1));
            } else {
                CountDownLatch locked = new CountDownLatch(2);
                Thread in = new Thread(() -> transfer(current, savings, locked), "transfer-in");
                Thread out = new Thread(() -> transfer(savings, current, locked), "transfer-out");
                in.start();
                out.start();
                System.out.println(begin);
                in.join();
                out.join();
            }
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
