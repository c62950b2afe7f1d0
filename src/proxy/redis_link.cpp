// Commands and replies of a link.
#include "proxy/redis_link.hpp"

#include <eddy/wire/resp/reply_writer.hpp>

#include <string_view>

namespace eddy::proxy {
namespace {

resp::reply_limits limits() noexcept {
    resp::reply_limits chosen;
    chosen.max_line = chosen.max_bulk = redis_link::most_bytes;
    chosen.max_elements = redis_link::most_values;
    return chosen;
}

/// Adds the value of an event; the heads of aggregates have none.
void take(const resp::reply_event& event, flat_reply& to) {
    using enum resp::reply_type;
    switch (event.type) {
        case error:
            if (event.depth == 0)
                to.error = event.text.empty() ? "ERR" : event.text;
            else
                to.values.emplace_back(event.text);
            return;
        case null:
            if (event.depth == 0)
                to.is_null = true;
            else
                to.values.emplace_back();
            return;
        case integer:
        case boolean: to.values.push_back(std::to_string(event.integer)); return;
        case number: to.values.push_back(std::to_string(event.number)); return;
        case simple:
        case bulk:
        case big_number:
        case verbatim: to.values.emplace_back(event.text); return;
        case array:
        case map:
        case set:
        case push:
        case attribute: return;
    }
}

}  // namespace

redis_link::redis_link(stream connected) noexcept
    : socket_(std::move(connected)), parser_(limits()) {}

task<result<flat_reply>> redis_link::ask(std::vector<std::string> words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    byte_buffer command;
    resp::write_command(command, views);
    const result<> sent = co_await socket_.write_all(command.bytes());
    if (!sent) co_return fail(sent.error());
    co_return co_await next();
}

task<result<flat_reply>> redis_link::next() {
    flat_reply reply;
    std::size_t size = 0;
    for (;;) {
        const resp::reply_outcome parsed = parser_.next(received_.text());
        if (parsed.status == resp::parse_status::error) co_return fail(errc::malformed);
        if (parsed.status == resp::parse_status::need_more) {
            if (size + received_.size() > most_bytes) co_return fail(errc::limit_reached);
            const result<lease> got = co_await socket_.read();
            if (!got) co_return fail(got.error());
            received_.append(got->text());
            continue;
        }
        take(parsed.event, reply);
        size += parsed.consumed;
        received_.consume(parsed.consumed);
        if (size > most_bytes || reply.values.size() > most_values)
            co_return fail(errc::limit_reached);
        if (!parsed.event.ends_reply) continue;
        received_.release_if_empty();
        co_return reply;
    }
}

}  // namespace eddy::proxy
