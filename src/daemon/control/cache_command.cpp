// The way of a command to its cache and back.
#include "daemon/control/cache_command.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/wire/resp/reply_parser.hpp>

#include "runtime/host/data_commands.hpp"

#include <fmt/format.h>

#include <cstdint>
#include <optional>
#include <utility>

namespace eddy::daemon {
namespace {

using runtime::local_cache;

/// Runs on the cache's loop.
task<std::string> run_there(std::shared_ptr<local_cache> at, local_cache::login by,
                            std::vector<std::string> words) {
    const std::vector<std::string_view> views(words.begin(), words.end());
    byte_buffer reply;
    auto rest = at->begin(by, {.argv = views.data(), .argc = views.size()}, reply);
    if (!rest) co_return std::string(reply.text());
    co_return co_await std::move(*rest);
}

/// Reader of one reply's events.
class reply_reader {
public:
    explicit reply_reader(std::string_view reply) noexcept : left_(reply) {}

    outcome<json> read() {
        const auto got = parser_.next(left_);
        if (got.status != resp::parse_status::complete)
            return refuse(500, "the cache has sent no reply");
        left_.remove_prefix(got.consumed);
        return value_of(got.event);
    }

private:
    outcome<json> value_of(const resp::reply_event& of) {
        using resp::reply_type;
        switch (of.type) {
            case reply_type::integer: return json(of.integer);
            case reply_type::null: return json(nullptr);
            case reply_type::array: return list_of(of.count);
            case reply_type::error: return json{{"error", of.text}};
            case reply_type::simple:
            case reply_type::bulk: return json(of.text);
            default: return refuse(500, "the cache has sent no reply of RESP2");
        }
    }

    outcome<json> list_of(std::uint64_t count) {
        if (elements_ + count > max_shown_elements)
            return refuse(507, fmt::format("the reply has more than {} values; use `eddy db` or "
                                           "redis-cli",
                                           max_shown_elements));
        elements_ += static_cast<std::size_t>(count);
        json list = json::array();
        for (std::uint64_t i = 0; i < count; ++i) {
            auto each = read();
            if (!each) return each;
            list.push_back(std::move(*each));
        }
        return list;
    }

    std::string_view left_;
    resp::reply_parser parser_;
    std::size_t elements_ = 0;
};

}  // namespace

outcome<json> reply_as_json(std::string_view reply) {
    if (reply.size() > max_shown_reply)
        return refuse(507,
                      fmt::format("the reply has more than {} bytes; use `eddy db` or redis-cli",
                                  max_shown_reply));
    return reply_reader(reply).read();
}

task<outcome<json>> run_cache_command(std::shared_ptr<local_cache> at, local_cache::login by,
                                      std::vector<std::string> words) {
    EDDY_ASSERT(at != nullptr && !words.empty());
    const std::vector<std::string_view> views(words.begin(), words.end());
    if (std::string why = runtime::refuse_data_command(views, "this API; use `eddy db`");
        !why.empty())
        co_return refuse(400, std::move(why));
    const executor home = at->home();
    auto reply =
        co_await resume_on(home, run_there(std::move(at), std::move(by), std::move(words)));
    if (!reply) co_return refuse(409, "the cache has stopped");
    co_return reply_as_json(*reply);
}

}  // namespace eddy::daemon
