// Grisu2's steps: bounds, a cached power of ten, digits until they are within the bounds.
#include "wire/resp/grisu.hpp"

#include <array>
#include <bit>
#include <cstdint>

namespace eddy::resp {
namespace {

// fraction * 2^exponent.
struct scaled {
    std::uint64_t fraction = 0;
    int exponent = 0;
};

constexpr int fraction_bits = 52;
constexpr int exponent_bias = 1075;
// The table has every eighth power of ten.
constexpr int first_power = -348;
constexpr int power_step = 8;
constexpr std::size_t powers = 87;
// Range of the exponent after scaling by a power, so that the digits before the point fit 32 bits.
constexpr int least_exponent = -60;
constexpr int most_exponent = -32;

scaled normalized(scaled of) noexcept {
    const int shift = std::countl_zero(of.fraction);
    return {of.fraction << shift, of.exponent - shift};
}

// Rounded to 64 bits.
scaled product(scaled a, scaled b) noexcept {
    __extension__ using wide = unsigned __int128;
    const wide exact = static_cast<wide>(a.fraction) * b.fraction;
    return {static_cast<std::uint64_t>((exact + (static_cast<wide>(1) << 63)) >> 64),
            a.exponent + b.exponent + 64};
}

// The upper 64 bits, rounded, of 10^-348, 10^-340 and so on to 10^340.
constexpr std::array<std::uint64_t, powers> power_fractions{
    0xfa8fd5a0081c0288, 0xbaaee17fa23ebf76, 0x8b16fb203055ac76, 0xcf42894a5dce35ea,
    0x9a6bb0aa55653b2d, 0xe61acf033d1a45df, 0xab70fe17c79ac6ca, 0xff77b1fcbebcdc4f,
    0xbe5691ef416bd60c, 0x8dd01fad907ffc3c, 0xd3515c2831559a83, 0x9d71ac8fada6c9b5,
    0xea9c227723ee8bcb, 0xaecc49914078536d, 0x823c12795db6ce57, 0xc21094364dfb5637,
    0x9096ea6f3848984f, 0xd77485cb25823ac7, 0xa086cfcd97bf97f4, 0xef340a98172aace5,
    0xb23867fb2a35b28e, 0x84c8d4dfd2c63f3b, 0xc5dd44271ad3cdba, 0x936b9fcebb25c996,
    0xdbac6c247d62a584, 0xa3ab66580d5fdaf6, 0xf3e2f893dec3f126, 0xb5b5ada8aaff80b8,
    0x87625f056c7c4a8b, 0xc9bcff6034c13053, 0x964e858c91ba2655, 0xdff9772470297ebd,
    0xa6dfbd9fb8e5b88f, 0xf8a95fcf88747d94, 0xb94470938fa89bcf, 0x8a08f0f8bf0f156b,
    0xcdb02555653131b6, 0x993fe2c6d07b7fac, 0xe45c10c42a2b3b06, 0xaa242499697392d3,
    0xfd87b5f28300ca0e, 0xbce5086492111aeb, 0x8cbccc096f5088cc, 0xd1b71758e219652c,
    0x9c40000000000000, 0xe8d4a51000000000, 0xad78ebc5ac620000, 0x813f3978f8940984,
    0xc097ce7bc90715b3, 0x8f7e32ce7bea5c70, 0xd5d238a4abe98068, 0x9f4f2726179a2245,
    0xed63a231d4c4fb27, 0xb0de65388cc8ada8, 0x83c7088e1aab65db, 0xc45d1df942711d9a,
    0x924d692ca61be758, 0xda01ee641a708dea, 0xa26da3999aef774a, 0xf209787bb47d6b85,
    0xb454e4a179dd1877, 0x865b86925b9bc5c2, 0xc83553c5c8965d3d, 0x952ab45cfa97a0b3,
    0xde469fbd99a05fe3, 0xa59bc234db398c25, 0xf6c69a72a3989f5c, 0xb7dcbf5354e9bece,
    0x88fcf317f22241e2, 0xcc20ce9bd35c78a5, 0x98165af37b2153df, 0xe2a0b5dc971f303a,
    0xa8d9d1535ce3b396, 0xfb9b7cd9a4a7443c, 0xbb764c4ca7a44410, 0x8bab8eefb6409c1a,
    0xd01fef10a657842c, 0x9b10a4e5e9913129, 0xe7109bfba19c0c9d, 0xac2820d9623bf429,
    0x80444b5e7aa7cf85, 0xbf21e44003acdd2d, 0x8e679c2f5e44ff8f, 0xd433179d9c8cb841,
    0x9e19db92b4e31ba9, 0xeb96bf6ebadf77d9, 0xaf87023b9bf0ee6b};

scaled power_of_ten(std::size_t index) noexcept {
    const int power = first_power + power_step * static_cast<int>(index);
    // The whole part of power * log2(10), in 16 bits behind the point.
    constexpr int log2_of_10 = 217706;
    return {power_fractions[index], (power * log2_of_10 >> 16) - 63};
}

// The number of one that brings this exponent to the wanted ones.
std::size_t power_for(int exponent) noexcept {
    constexpr double log10_of_2 = 0.30102999566398114;
    const auto about = static_cast<int>(-(exponent + static_cast<int>(powers)) * log10_of_2);
    auto index = static_cast<std::size_t>((about - first_power) / power_step);
    for (;;) {
        const int reached = exponent + power_of_ten(index).exponent + 64;
        if (reached < least_exponent)
            ++index;
        else if (reached > most_exponent)
            --index;
        else
            return index;
    }
}

// Brings the last digit nearer to the number, which is `distance` below the upper bound as `rest`
// is above what the digits say.
void round_last(decimal& to, std::uint64_t range, std::uint64_t rest, std::uint64_t unit,
                std::uint64_t distance) noexcept {
    while (rest < distance && range - rest >= unit &&
           (rest + unit < distance || distance - rest > rest + unit - distance)) {
        --to.digits[to.count - 1];
        rest += unit;
    }
}

// The digits of the upper bound, until what is left is less than the range. Returns the power of
// ten of the last one.
int generate(decimal& to, scaled number, scaled lower, scaled upper) noexcept {
    const int shift = -upper.exponent;
    const std::uint64_t one = std::uint64_t{1} << shift;
    std::uint64_t distance = upper.fraction - number.fraction;
    std::uint64_t range = upper.fraction - lower.fraction;
    std::uint64_t whole = upper.fraction >> shift;
    std::uint64_t part = upper.fraction & (one - 1);
    int power = 10;
    for (std::uint64_t unit = 1'000'000'000; power > 0; unit /= 10) {
        const std::uint64_t digit = whole / unit;
        whole %= unit;
        if (digit != 0 || to.count != 0) to.digits[to.count++] = static_cast<char>('0' + digit);
        --power;
        const std::uint64_t rest = (whole << shift) + part;
        if (rest <= range) {
            round_last(to, range, rest, unit << shift, distance);
            return power;
        }
    }
    for (;;) {
        part *= 10;
        range *= 10;
        distance *= 10;
        --power;
        const std::uint64_t digit = part >> shift;
        if (digit != 0 || to.count != 0) to.digits[to.count++] = static_cast<char>('0' + digit);
        part &= one - 1;
        if (part < range) {
            round_last(to, range, part, one, distance);
            return power;
        }
    }
}

}  // namespace

decimal grisu_digits(double positive) noexcept {
    const auto bits = std::bit_cast<std::uint64_t>(positive);
    constexpr std::uint64_t hidden = std::uint64_t{1} << fraction_bits;
    scaled number{bits & (hidden - 1), static_cast<int>(bits >> fraction_bits)};
    if (number.exponent != 0) {
        number.fraction += hidden;
        number.exponent -= exponent_bias;
    } else {
        number.exponent = 1 - exponent_bias;
    }
    // Half way to the next numbers; below a power of two the next one is half as far.
    const scaled upper = normalized({2 * number.fraction + 1, number.exponent - 1});
    const int nearer = number.fraction == hidden ? 2 : 1;
    scaled lower{(number.fraction << nearer) - 1, number.exponent - nearer};
    lower.fraction <<= lower.exponent - upper.exponent;
    lower.exponent = upper.exponent;

    const std::size_t index = power_for(upper.exponent);
    const scaled power = power_of_ten(index);
    scaled above = product(upper, power);
    scaled below = product(lower, power);
    // A rounded bound may be off by one, so the interval shrinks by one at each end.
    --above.fraction;
    ++below.fraction;
    decimal made;
    const int last = generate(made, product(normalized(number), power), below, above);
    made.exponent = last - (first_power + power_step * static_cast<int>(index)) +
                    static_cast<int>(made.count) - 1;
    return made;
}

}  // namespace eddy::resp
