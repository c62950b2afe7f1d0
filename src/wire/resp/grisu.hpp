// Decimal digits of a double by Grisu2 (F. Loitsch, "Printing Floating-Point Numbers Quickly and
// Accurately with Integers", PLDI 2010), which is how Redis finds them.
//
// They read back as the same number, and nearly always are the fewest that do. Where they are not,
// as for 1e23, clients that compare texts with those of Redis see the same ones.
#pragma once

#include <cstddef>

namespace eddy::resp {

/// The digits of a number, "d.ddd" without the point, and the power of ten of the first.
struct decimal {
    char digits[20];
    std::size_t count = 0;
    int exponent = 0;
};

/// Digits of a finite number above 0. Any thread.
decimal grisu_digits(double positive) noexcept;

}  // namespace eddy::resp
