// Comparison of a stream of replies with one that is expected again and again: the lean path of a
// load generator, which counts replies at the speed of memcmp and leaves the others to a parser.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace eddy::cli::bench {

/// The bytes of a reply, of which one field of fixed size may differ (the value of Date), and a
/// tail may be skipped uncompared. Immutable once made: any thread. The position within the
/// reply is the caller's, one a connection.
class repeated_reply {
public:
    /// Bytes that are kept and compared at most; the rest of a longer reply is skipped.
    static constexpr std::size_t compared_limit = 16 * 1024;

    /// Matches nothing.
    repeated_reply() = default;
    /// `text` is the beginning of a reply of `total` bytes, all of it if that is its size. The
    /// `varying` bytes at `varying_at` match any others but CR and LF.
    repeated_reply(std::string text, std::uint64_t total, std::size_t varying_at = 0,
                   std::size_t varying = 0);

    explicit operator bool() const noexcept { return total_ > 0; }

    /// Consumes bytes of `input` that continue at `at`, up to the end of the reply `most`, and
    /// returns how many. Counts whole replies in `replies`. If it leaves bytes and `replies` is
    /// below `most`, these do not match: read_so_far(at) is what stood before them.
    std::size_t match(std::string_view input, std::size_t most, std::uint64_t& at,
                      std::size_t& replies) const noexcept;

    /// The reply up to `at`, once that has not matched. The varying bytes are those of the
    /// original.
    std::string_view read_so_far(std::uint64_t at) const noexcept {
        return std::string_view(text_).substr(0, static_cast<std::size_t>(at));
    }

private:
    bool is_whole(const char* reply) const noexcept;
    // The longest step from `at` that matches all of it, or 0.
    std::size_t step(std::string_view input, std::uint64_t at) const noexcept;

    std::string text_;
    std::uint64_t total_ = 0;
    std::size_t varying_begin_ = 0;
    std::size_t varying_end_ = 0;
};

}  // namespace eddy::cli::bench
