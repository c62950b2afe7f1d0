// Percentiles and mean of a histogram.
#include <eddy/base/histogram.hpp>

#include <algorithm>
#include <cmath>

namespace eddy {

std::uint64_t histogram::middle_of(std::size_t index) noexcept {
    if (index < linear_end) return index;
    const std::size_t shift = (index >> sub_bits) - 1;
    const std::uint64_t low = ((linear_end / 2) + (index & (linear_end / 2 - 1))) << shift;
    return low + (std::uint64_t{1} << shift) / 2;
}

double histogram::mean() const noexcept {
    return count_ == 0 ? 0.0 : static_cast<double>(sum_) / static_cast<double>(count_);
}

std::uint64_t histogram::percentile(double percent) const noexcept {
    if (count_ == 0) return 0;
    if (!(percent > 0)) return min_;
    if (percent >= 100) return max_;
    const double exact_rank = percent / 100 * static_cast<double>(count_);
    const auto rank = static_cast<std::uint64_t>(std::ceil(exact_rank));
    std::uint64_t seen = 0;
    for (std::size_t i = 0; i < bucket_count; ++i) {
        seen += counts_[i];
        if (seen >= rank) return std::clamp(middle_of(i), min_, max_);
    }
    return max_;
}

std::uint64_t histogram::count_up_to(std::uint64_t value) const noexcept {
    if (value >= largest_value) return count_;
    const std::size_t last = index_of(value);
    std::uint64_t total = 0;
    for (std::size_t i = 0; i <= last; ++i) total += counts_[i];
    return total;
}

void histogram::merge(const histogram& other) noexcept {
    count_ += other.count_;
    sum_ += other.sum_;
    min_ = std::min(min_, other.min_);
    max_ = std::max(max_, other.max_);
    for (std::size_t i = 0; i < bucket_count; ++i) counts_[i] += other.counts_[i];
}

}  // namespace eddy
