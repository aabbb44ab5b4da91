import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;

/**
 * Keeps records in memory and obeys its stdin: each line is how long it imports records, in s. The
 * heap is all but full, so that a few new records are all that fits between two collections of it.
 */
public class Importer {
    private static final double KEPT = 0.97;
    private final List<byte[]> records = new ArrayList<>();

    /** Keeps as many records as fit, but for a small part. */
    void load() {
        try {
            while (true) {
                records.add(new byte[200]);
            }
        } catch (OutOfMemoryError full) {
            records.subList((int) (records.size() * KEPT), records.size()).clear();
        }
    }

    /** Replaces one record after the other for so long, and one at least. */
    void importRecords(double seconds) {
        long end = System.nanoTime() + (long) (seconds * 1e9);
        int next = 0;
        do {
            records.set(next, new byte[200]);
            next = (next + 1) % records.size();
        } while (System.nanoTime() < end);
    }

    public static void main(String[] args) throws Exception {
        Importer importer = new Importer();
        importer.load();
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in));
        System.out.println("ready");
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            long begin = System.nanoTime();
            importer.importRecords(Double.parseDouble(line));
            System.out.println(begin + " " + System.nanoTime());
        }
    }
}
