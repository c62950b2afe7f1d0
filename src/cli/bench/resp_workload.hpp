// Workload of `eddy bench resp`: pipelines encoded before the clock starts, and their expected
// replies.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::cli::bench {

/// The shape of a run.
struct bench_shape {
    std::size_t pipeline = 100;  ///< commands sent before their replies are awaited
    std::uint64_t keys = 1;      ///< 1: one hot key; more: uniformly random among so many
    std::size_t value_size = 3;  ///< bytes
    std::uint64_t requests = 5'000'000;
    std::uint64_t seed = 1;
};

/// One command's test: `set`, `get`, `lpush`, ...
class workload {
public:
    /// Encodes the pipelines of the test `name`; nothing when there is no such test. Memory: up to
    /// most_encoded_bytes.
    static std::optional<workload> make(std::string_view name, const bench_shape& shape);
    static std::vector<std::string_view> names();

    /// More distinct pipelines than this are not encoded; they are sent in rotation instead.
    static constexpr std::size_t most_encoded_bytes = std::size_t{768} << 20;

    const std::string& name() const noexcept { return name_; }
    std::size_t pipeline() const noexcept { return pipeline_; }
    std::size_t batches() const noexcept { return offsets_.size() - 1; }
    std::string_view batch(std::size_t index) const noexcept {
        return std::string_view(encoded_).substr(offsets_[index],
                                                 offsets_[index + 1] - offsets_[index]);
    }

    /// Data that must be in place before the test: none, every key set, or a list that has an
    /// element for each pop.
    enum class preparation { none, set_all_keys, fill_list };
    preparation needs() const noexcept { return needs_; }

    /// Kind of reply that is expected; checked in a second pass, outside the timed one.
    enum class reply_kind { ok, pong, value, integer, increasing };
    reply_kind expected() const noexcept { return expected_; }
    std::string_view value() const noexcept { return value_; }

private:
    workload() = default;

    std::string name_;
    std::size_t pipeline_ = 0;
    std::string encoded_;
    std::vector<std::size_t> offsets_;
    preparation needs_ = preparation::none;
    reply_kind expected_ = reply_kind::ok;
    std::string value_;
};

/// `key:` and twelve digits: 16 bytes.
std::string bench_key(std::uint64_t number);

/// A command as an array of bulk strings, appended to `out`.
void encode_command(std::string& out, std::initializer_list<std::string_view> arguments);

}  // namespace eddy::cli::bench
