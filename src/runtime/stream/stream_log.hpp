// Access log of a stream runtime: a line of JSON for each client that was answered.
#pragma once

#include <eddy/io/endpoint.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "runtime/serving/served_log.hpp"
#include "runtime/stream/sessions.hpp"
#include "runtime/stream/sources/source.hpp"
#include "runtime/stream/stream_request.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace eddy::runtime::stream {

/// Bytes of a text from a handoff in a line at most.
inline constexpr std::size_t max_logged_text = 256;

/// One loop's thread. Without a file nothing is kept and nothing written.
class stream_log {
public:
    /// As served_log.
    stream_log(serving::journal& events, serving::tally& dropped) noexcept
        : file_(events, dropped), dropped_(dropped) {}

    /// As served_log::open(), and begins to write.
    outcome<> open(const std::string& path);
    bool is_open() const noexcept { return file_.is_open(); }
    /// As served_log.
    outcome<> reopen() { return file_.reopen(); }
    /// Writes what there is.
    task<void> close() { return file_.close(); }

    /// A stream has begun.
    void begin(std::uint32_t stream, const stream_request& from, const endpoint& client) noexcept;
    /// A backend has answered it; the last one counts.
    void note_answer(std::uint32_t stream, const backend_answer& by) noexcept;
    /// It has ended, by a reason as metrics have it, or "done". Without effect for one that is not
    /// known. `sent` is empty where its bytes are not counted.
    void end(std::uint32_t stream, std::string_view reason,
             const std::optional<sent_count>& sent) noexcept;
    /// A client was answered without a stream.
    void note_refusal(const stream_request& from, const endpoint& client, int status,
                      std::string_view reason) noexcept;
    /// Streams that have begun and not ended, of which `visit` is called with each number.
    template <class Visit>
    void for_each(Visit&& visit) const {
        std::vector<std::uint32_t> numbers;
        for (const auto& [number, its] : streams_) numbers.push_back(number);
        for (const std::uint32_t each : numbers) visit(each);
    }

private:
    struct record {
        std::string client;
        std::string user;
        std::string request;
        std::string backend;
        int backend_status = 0;
        duration backend_time{};
        time_point begun{};
    };
    static record record_of(const stream_request& from, const endpoint& client);
    void write(const record& of, int status, std::string_view reason,
               const std::optional<sent_count>& sent);

    served_log file_;
    serving::tally& dropped_;
    std::unordered_map<std::uint32_t, record> streams_;
};

}  // namespace eddy::runtime::stream
