// Threads that wait in known methods of Java, and one that computes: Orchard MILLISECONDS, for the
// recorder to learn where the machine is before they begin. Nothing is printed.
public class Orchard {
    private static final Object PRESS = new Object();
    private static long juice;

    static void pick() throws InterruptedException {
        Thread.sleep(20);
    }

    static void climb() throws InterruptedException {
        pick();
    }

    static void harvest() {
        try {
            for (int tree = 0; tree < 10; tree++) {
                climb();
            }
        } catch (InterruptedException never) {
            throw new IllegalStateException(never);
        }
    }

    static void crush() {
        synchronized (PRESS) {
            long end = System.nanoTime() + 400_000_000L;
            while (System.nanoTime() < end) {
                juice = juice * 31 + 7;
            }
        }
    }

    static void await() {
        synchronized (PRESS) {
            juice++;
        }
    }

    public static void main(String[] words) throws InterruptedException {
        Thread.sleep(Long.parseLong(words[0]));
        Thread[] threads = {
            new Thread(Orchard::harvest, "harvest"),
            new Thread(Orchard::crush, "crush"),
            new Thread(Orchard::await, "await"),
        };
        for (Thread thread : threads) {
            thread.start();
            Thread.sleep(20);
        }
        for (Thread thread : threads) {
            thread.join();
        }
    }
}
