// SPDX-License-Identifier: Apache-2.0
//
// Java: a HashMap of objects, a TreeMap, a list that is sorted, and big arrays.
import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.Map;
import java.util.Random;
import java.util.TreeMap;

public final class Maps {
    private record Entry(long number, String name, long[] values) {}

    public static void main(String[] arguments) {
        final int count = Integer.parseInt(arguments[0]);
        final Random random = new Random(25);
        final Map<Long, Entry> entries = new HashMap<>();
        for (int i = 0; i < count; i++) {
            final long number = random.nextLong();
            final long[] values = {i, number, i ^ number};
            entries.put(number, new Entry(number, "entry " + i, values));
        }
        long sum = 0;
        for (final Entry entry : entries.values()) {
            sum += entry.values()[2] ^ entry.name().hashCode();
        }
        System.out.println(entries.size() + " " + sum);
        final ArrayList<Long> keys = new ArrayList<>(entries.keySet());
        Collections.sort(keys);
        System.out.println(keys.get(0) + " " + keys.get(count / 2) + " " + keys.get(count - 1));
        final TreeMap<String, Long> names = new TreeMap<>();
        for (int i = 0; i < count; i += 3) {
            final Entry entry = entries.remove(keys.get(i));
            names.put(entry.name(), entry.number());
        }
        System.out.println(names.firstKey() + " " + names.get(names.lastKey()));
        System.out.println(entries.size());
        final int[] numbers = new int[count * 8];
        for (int i = 0; i < numbers.length; i++) numbers[i] = random.nextInt();
        java.util.Arrays.sort(numbers);
        System.out.println(numbers[0] + " " + numbers[numbers.length / 2]);
    }
}
