// Errors that tests have thrown where this library's own threads allocate memory.
package io.eddy.shm;

import java.util.function.Consumer;

/** Injection of errors. Any thread. */
final class Faults {
    /** Called with the name of each place; what it throws, the place throws. Null, but for tests. */
    static volatile Consumer<String> injected;

    private Faults() {}

    static void at(String place) {
        Consumer<String> its = injected;
        if (its != null) {
            its.accept(place);
        }
    }
}
