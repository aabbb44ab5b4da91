import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.net.HttpURLConnection;
import java.net.URI;
import java.util.concurrent.locks.ReentrantLock;

/**
 * Keeps reservations and obeys its stdin: "reserve" makes one, "confirm S" has a thread ask the
 * hotel, whose server takes S seconds, to confirm all. Both take one lock. The property
 * hotel.port is the port of that server.
 */
public class Reservations {
    private static final ReentrantLock lock = new ReentrantLock();
    private static int reserved;

    static void reserve() {
        lock.lock();
        try {
            reserved++;
        } finally {
            lock.unlock();
        }
    }

    static void confirmAll(String seconds) {
        String port = System.getProperty("hotel.port");
        lock.lock();
        try {
            System.out.println("confirming");
            HttpURLConnection hotel = (HttpURLConnection)
                    URI.create("http://127.0.0.1:" + port + "/" + seconds).toURL().openConnection();
            hotel.getInputStream().readAllBytes();
        } catch (java.io.IOException exception) {
            System.out.println(exception);
        } finally {
            lock.unlock();
        }
    }

    public static void main(String[] args) throws Exception {
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split(" ");
            if (words[0].equals("confirm")) {
                new Thread(() -> confirmAll(words[1]), "Confirmer").start();
                continue;
            }
            long begin = System.nanoTime();
            reserve();
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
