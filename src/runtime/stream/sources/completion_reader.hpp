// Reader of a streamed chat completion: events of an API as OpenAI's in, events for the client out.
// No sockets and no clock.
//
// It takes what OpenAI's own clients take: objects that are no chunks, chunks without choices, and
// an end without [DONE] behind a finish_reason.
//
// https://platform.openai.com/docs/api-reference/chat/streaming
#pragma once

#include <eddy/wire/sse.hpp>

#include "runtime/stream/options.hpp"
#include "runtime/stream/sources/piece_joiner.hpp"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One stream.
class completion_reader {
public:
    /// Deepest nesting of a chunk.
    static constexpr std::size_t max_depth = 64;
    /// Members of all objects of a chunk. The parser's time is quadratic in them.
    static constexpr std::size_t max_members = 4096;
    /// Choices whose ends are waited for where [DONE] is missing; those of further ones are not.
    static constexpr std::size_t max_choices = 128;

    /// Meaning of an event.
    enum class step : std::uint8_t {
        pieces,     ///< events() are for the client; there may be none
        done,       ///< [DONE]
        error,      ///< the API reports a failure; detail() has its text, which is untrusted
        malformed,  ///< it cannot be read, and detail() says why
    };

    explicit completion_reader(completion_events wanted) noexcept : wanted_(wanted) {}

    step take(const sse::event& from);
    /// Events of the last step, as they are sent. The caller may move from them.
    std::vector<std::string>& events() noexcept { return events_; }
    std::string& detail() noexcept { return detail_; }

    /// The API has sent its last byte. Whether the answer is whole all the same: each choice has
    /// its finish_reason. Otherwise the answer broke off.
    bool is_finished() const noexcept;
    /// Puts characters whose second half never came into events(), as U+FFFD.
    void end();

private:
    using value = nlohmann::ordered_json;
    struct choice {
        std::uint32_t index;
        bool is_finished;
    };

    void read_choice(value& from, bool has_marks);
    void read_delta(value& delta, std::uint32_t index);
    void join_all(value& in, std::string& name, bool has_marks);
    void note_choice(std::uint32_t index, bool is_finished);
    void add_content(std::string_view text, std::uint32_t index);
    void add_members(std::string_view name, const value& members, std::uint32_t index);

    completion_events wanted_;
    std::vector<choice> choices_;
    piece_joiner joiner_;
    std::vector<std::string> events_;
    std::string detail_;
};

}  // namespace eddy::runtime::stream
