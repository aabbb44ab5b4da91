import java.util.concurrent.CountDownLatch;
import java.util.concurrent.locks.LockSupport;
import java.util.concurrent.locks.ReentrantLock;

/**
 * A Java program whose main thread, called asker, waits for good: JavaWaits PATTERN. In monitors it
 * and another thread take two monitors in opposite orders; in lock another thread holds the lock
 * and sleeps; in notify a thread that should notify it sleeps instead.
 */
public class JavaWaits {
    private static final Object first = new Object();
    private static final Object second = new Object();
    private static final ReentrantLock lock = new ReentrantLock();
    private static final CountDownLatch bothHold = new CountDownLatch(2);
    private static final CountDownLatch held = new CountDownLatch(1);

    private static void take(Object own, Object other) {
        synchronized (own) {
            bothHold.countDown();
            try {
                bothHold.await();
            } catch (InterruptedException never) {
                throw new IllegalStateException(never);
            }
            synchronized (other) {
                System.out.println("has both");
            }
        }
    }

    private static void forGood() {
        while (true) {
            LockSupport.park();
        }
    }

    private static void start(String name, Runnable work) {
        Thread thread = new Thread(work, name);
        thread.setDaemon(true);
        thread.start();
    }

    public static void main(String[] words) throws InterruptedException {
        Thread.currentThread().setName("asker");
        switch (words[0]) {
            case "monitors":
                start("answerer", () -> take(second, first));
                take(first, second);
                break;
            case "lock":
                start("holder", () -> {
                    lock.lock();
                    held.countDown();
                    forGood();
                });
                held.await();
                lock.lock();
                break;
            default:
                start("notifier", () -> {
                    forGood();
                    synchronized (first) {
                        first.notify();
                    }
                });
                synchronized (first) {
                    first.wait();
                }
        }
    }
}
