// A thread that computes in one call of a method, which is compiled meanwhile, until it is killed.

public class Mill {
    static volatile double flour;

    static double grind() {
        double sum = 0;
        while (System.nanoTime() != 0) {
            for (int at = 1; at < 2000; at++) {
                sum += Math.sin(at) * Math.sqrt(at);
            }
            flour = sum;
        }
        return sum;
    }

    public static void main(String[] words) {
        new Thread(Mill::grind, "mill").start();
    }
}
