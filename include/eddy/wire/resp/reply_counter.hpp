// Counter of the replies in a stream, without decoding: cheap enough for a load generator at tens
// of millions of replies a second.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace eddy::resp {

/// Counts complete top-level replies of a RESP2 or RESP3 stream that is passed to it piece by
/// piece, split anywhere; it keeps no bytes and never allocates. It checks the framing, not the
/// values. Small status replies cost about a nanosecond, small strings a few. One thread.
class reply_counter {
public:
    /// Elements that may be outstanding in one reply; more is malformed.
    static constexpr std::uint64_t max_elements = 1ULL << 40;

    /// Takes the next piece of the stream; returns how many replies it completed. RESP3 pushes are
    /// no replies. After malformed() nothing more is counted.
    std::uint64_t count(std::string_view piece) noexcept;

    std::uint64_t replies() const noexcept { return replies_; }  ///< complete ones so far
    std::uint64_t errors() const noexcept { return errors_; }    ///< error values, nested ones too

    /// RESP3 pushes so far.
    std::uint64_t pushes() const noexcept { return pushes_; }
    /// True if the stream broke the framing.
    bool malformed() const noexcept { return state_ == state::malformed; }
    /// True when the last reply is complete and nothing follows it.
    bool at_boundary() const noexcept { return state_ == state::start && !within_reply_; }

private:
    enum class state : std::uint8_t { start, line, digits, body, malformed };

    const char* skip_strings(const char* at, const char* end) noexcept;
    void begin_value(char type) noexcept;
    bool take_digit(char c) noexcept;
    void end_head() noexcept;
    void end_value() noexcept;

    std::uint64_t replies_ = 0;
    std::uint64_t errors_ = 0;
    std::uint64_t pushes_ = 0;
    std::uint64_t pending_ = 1;  // values that complete the current reply
    std::uint64_t number_ = 0;   // the count being read, or the bytes of a string still to skip
    state state_ = state::start;
    char type_ = 0;
    bool negative_ = false;
    bool has_digits_ = false;
    bool within_reply_ = false;  // an aggregate or an attribute has begun
    bool within_value_ = false;  // an aggregate has
    bool in_push_ = false;
};

}  // namespace eddy::resp
