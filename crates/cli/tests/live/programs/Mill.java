// Computes in a method that is soon compiled, until it is killed.

public class Mill {
    static volatile long flour;

    static void grind() {
        for (int at = 0; at < 1_000_000; at++) {
            flour = flour * 31 + 7;
        }
    }

    public static void main(String[] words) {
        while (true) {
            grind();
        }
    }
}
