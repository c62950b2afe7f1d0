// Access log of a stream runtime.
#include "runtime/stream/stream_log.hpp"

#include <eddy/io/loop.hpp>

#include "runtime/logs/access_log.hpp"

#include <nlohmann/json.hpp>

#include <chrono>
#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

double seconds(duration time) noexcept { return std::chrono::duration<double>(time).count(); }

std::string shortened(std::string_view text) {
    return std::string(text.substr(0, max_logged_text));
}

}  // namespace

outcome<> stream_log::open(const std::string& path) {
    if (auto opened = file_.open(path, false); !opened) return opened;
    file_.begin();
    return {};
}

stream_log::record stream_log::record_of(const stream_request& from, const endpoint& client) {
    record made;
    made.client = log_label(access_format::json, client, {}).address;
    made.user = shortened(from.user_id);
    made.request = shortened(from.request_id);
    made.begun = loop::current().now();
    return made;
}

void stream_log::begin(std::uint32_t stream, const stream_request& from,
                       const endpoint& client) noexcept {
    if (!is_open()) return;
    try {
        streams_[stream] = record_of(from, client);
    } catch (const std::bad_alloc&) {
        ++dropped_;
    }
}

void stream_log::note_answer(std::uint32_t stream, const backend_answer& by) noexcept {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    found->second.backend_status = by.status;
    found->second.backend_time = by.time;
    try {
        found->second.backend = by.name;
    } catch (const std::bad_alloc&) {  // NOLINT(bugprone-empty-catch): the line lacks it
    }
}

void stream_log::end(std::uint32_t stream, std::string_view reason,
                     const std::optional<sent_count>& sent) noexcept {
    const auto found = streams_.find(stream);
    if (found == streams_.end()) return;
    try {
        write(found->second, 0, reason, sent);
    } catch (const std::bad_alloc&) {
        ++dropped_;
    }
    streams_.erase(found);
}

void stream_log::note_refusal(const stream_request& from, const endpoint& client, int status,
                              std::string_view reason) noexcept {
    if (!is_open()) return;
    try {
        write(record_of(from, client), status, reason, std::nullopt);
    } catch (const std::bad_alloc&) {
        ++dropped_;
    }
}

void stream_log::write(const record& of, int status, std::string_view reason,
                       const std::optional<sent_count>& sent) {
    nlohmann::ordered_json line = {{"time", json_time(std::chrono::system_clock::now())},
                                   {"client", of.client}};
    if (!of.user.empty()) line["user"] = of.user;
    if (!of.request.empty()) line["request"] = of.request;
    if (status != 0) line["status"] = status;
    if (!of.backend.empty()) {
        line["backend"] = of.backend;
        line["backend_status"] = of.backend_status;
        line["backend_seconds"] = seconds(of.backend_time);
    }
    if (sent) {
        line["bytes"] = sent->bytes;
        if (sent->first != time_point{}) line["first_seconds"] = seconds(sent->first - of.begun);
    }
    if (status == 0) line["seconds"] = seconds(loop::current().now() - of.begun);
    line["reason"] = reason;
    if (!file_.lines().append(json_text(line) + "\n", 1)) ++dropped_;
}

}  // namespace eddy::runtime::stream
