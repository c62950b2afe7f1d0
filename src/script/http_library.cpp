// eddy.http(): what a script's table says becomes a request, and a response a table.
#include "script/http_library.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/timeout.hpp>

#include "script/http_fields.hpp"
#include "script/waiting_bytes.hpp"

#include <utility>

namespace eddy::script {
namespace {

/// A response in pieces is a table of its head with methods.
constexpr std::string_view prelude_text = R"lua(
local _, extend = ...
local begin, read, close = eddy.http, eddy.http_read, eddy.http_close
local class = { __metatable = false, __index = {
  read = function(self, size) return read(self.id, size) end,
  close = function(self) return close(self.id) end,
} }
extend(eddy, "http_read", nil)
extend(eddy, "http_close", nil)
extend(eddy, "http", function(request)
  if type(request) ~= "table" or not request.stream then return begin(request) end
  local response, why = begin(request)
  if not response then return nil, why end
  return setmetatable(response, class)
end)
)lua";

http::client_pool_options options_of(const http_limits& limits, std::string authorities) {
    http::client_pool_options made;
    made.connections = limits.connections;
    made.waiting = limits.waiting;
    made.tls.ca = std::move(authorities);
    return made;
}

/// Sets `to` to a text of the table's; false for another value.
bool take_text(const table& from, std::string_view name, std::string& to) {
    const value& found = from[name];
    if (found.is_nil()) return true;
    std::string kept;
    const std::string* const text = text_of(found, kept);
    if (text != nullptr) to = *text;
    return text != nullptr;
}

struct wanted {
    http::pool_request request;
    duration time;
    bool is_streamed = false;
};

/// The request of a script's argument; an error's text for what cannot be.
std::expected<wanted, std::string> read(const value& of, duration usual) {
    wanted made{.request = {}, .time = usual};
    if (of.text() != nullptr) {
        made.request.url = *of.text();
        if (made.request.url.empty()) return std::unexpected("there is no url");
        return made;
    }
    const table* const fields = of.fields();
    if (fields == nullptr) return std::unexpected("");
    std::string content;
    for (const auto& [name, to] : {std::pair{"url", &made.request.url},
                                   {"method", &made.request.method},
                                   {"body", &content}})
        if (!take_text(*fields, name, *to))
            return std::unexpected(std::string(name) + " is no text");
    if (made.request.url.empty()) return std::unexpected("there is no url");
    if (auto added = add_fields((*fields)["headers"], made.request.headers); !added)
        return std::unexpected(std::move(added.error()));
    if (const value& time = (*fields)["timeout"]; !time.is_nil()) {
        using milliseconds = std::chrono::duration<double, std::milli>;
        constexpr double most = 24.0 * 3600 * 1000;
        if (time.number() == nullptr || !(*time.number() > 0 && *time.number() <= most))
            return std::unexpected("timeout is no number of milliseconds");
        made.time = std::chrono::duration_cast<duration>(milliseconds(*time.number()));
    }
    const bool* const is_streamed = (*fields)["stream"].truth();
    if (is_streamed == nullptr && !(*fields)["stream"].is_nil())
        return std::unexpected("stream is neither true nor false");
    made.is_streamed = is_streamed != nullptr && *is_streamed;
    if (!(*fields)["body"].is_nil()) made.request.body = http::body(std::move(content));
    return made;
}

struct received {
    http::pool_response head;
    std::string content;
};

task<result<received>> fetch(http::client_pool& by, http::pool_request request,
                             const http_limits& limits, std::size_t& receiving) {
    EDDY_ASSERT(!request.url.empty() && limits.content > 0);
    auto head = co_await by.send(std::move(request));
    if (!head) co_return fail(head.error());
    waiting_bytes held(receiving, limits.receiving);
    std::string content;
    for (;;) {
        const auto piece = co_await head->body().read();
        if (!piece && piece.error() == errc::end_of_stream) break;
        if (!piece) co_return fail(piece.error());
        const std::size_t size = content.size() + piece->size();
        if (size > limits.content || !held.set(size)) co_return fail(errc::limit_reached);
        content.append(*piece);
    }
    co_return received{std::move(*head), std::move(content)};
}

table head_of(const http::pool_response& from) {
    table made;
    made.fields.emplace_back("status", from.status);
    made.fields.emplace_back("url", from.url);
    made.fields.emplace_back("headers", fields_of(from.headers));
    return made;
}

task<function_result> perform(http::client_pool& by, wanted what, const http_limits& limits,
                              std::size_t& receiving) {
    EDDY_ASSERT(what.time > duration{});
    auto got =
        co_await with_timeout(what.time, fetch(by, std::move(what.request), limits, receiving));
    if (!got) co_return std::unexpected(got.error().message());
    table made = head_of(got->head);
    made.fields.emplace_back("body", std::move(got->content));
    co_return values_of(std::move(made));
}

}  // namespace

struct http_requests::stream {
    http::pool_response head;
    duration time;  // limit on each wait
    const call* owner = nullptr;
    std::string left = {};  // of the last piece
    bool has_ended = false;
    cancel_source* reading = nullptr;  // while a function waits for a piece

    void close() noexcept {
        has_ended = true;
        left = {};
        if (reading != nullptr && !reading->requested()) reading->request();
    }
};

struct http_functions {
    using stream_pointer = std::shared_ptr<http_requests::stream>;

    static task<function_result> begin_stream(http_requests& by, wanted what, const call* owner) {
        auto head = co_await with_timeout(what.time, by.pool_.send(std::move(what.request)));
        if (!head) co_return std::unexpected(head.error().message());
        if (by.streams_.size() >= by.limits_.streams)
            co_return std::unexpected("too many responses are read in pieces");
        table made = head_of(*head);
        auto kept = std::make_shared<http_requests::stream>(
            http_requests::stream{.head = std::move(*head), .time = what.time, .owner = owner});
        by.streams_.emplace(++by.last_id_, std::move(kept));
        made.fields.emplace_back("id", by.last_id_);
        co_return values_of(std::move(made));
    }

    static task<result<std::string>> next_piece(http_requests::stream& from) {
        auto piece = co_await from.head.body().read();
        if (!piece) co_return fail(piece.error());
        co_return std::string(*piece);
    }

    static values taken(http_requests::stream& from, std::size_t most) {
        EDDY_ASSERT(most > 0 && !from.has_ended);
        std::string piece = from.left.substr(0, most);
        from.left.erase(0, piece.size());
        return values_of(std::move(piece));
    }

    static task<function_result> read_next(http_requests& by, std::uint64_t id, stream_pointer from,
                                           std::size_t most) {
        EDDY_ASSERT(from->reading == nullptr && from->left.empty() && most > 0);
        cancel_source closing(co_await current_source());
        from->reading = &closing;
        auto piece = co_await with_timeout(from->time, next_piece(*from)).under(closing);
        from->reading = nullptr;
        if (piece && !from->has_ended) {
            from->left = std::move(*piece);
            co_return taken(*from, most);
        }
        const bool was_closed = from->has_ended;
        by.streams_.erase(id);
        if (was_closed) co_return std::unexpected("closed");
        if (piece.error() == errc::end_of_stream) co_return values_of(value());
        co_return std::unexpected(piece.error().message());
    }

    static std::uint64_t id_of(const invocation& of) noexcept {
        const double id = of.number(1);
        constexpr double most = 9e15;
        return id >= 1 && id < most ? static_cast<std::uint64_t>(id) : 0;
    }

    static answer read_stream(invocation& of) {
        auto& by = of.context<http_requests>();
        const auto found = by.streams_.find(id_of(of));
        // Its end was read before, or its callback has ended.
        if (found == by.streams_.end()) return values_of(value());
        const stream_pointer from = found->second;
        if (from->reading != nullptr) return answer::failed("another callback reads it");
        constexpr double largest = 16.0 * 1024 * 1024;
        const double size = of.has(2) ? of.number(2) : largest;
        if (!(size >= 1 && size <= largest)) return answer::misused();
        const auto most = static_cast<std::size_t>(size);
        if (!from->left.empty()) return taken(*from, most);
        return read_next(by, found->first, from, most);
    }

    static answer close_stream(invocation& of) {
        auto& by = of.context<http_requests>();
        const auto found = by.streams_.find(id_of(of));
        if (found == by.streams_.end()) return false;
        found->second->close();
        by.streams_.erase(found);
        return true;
    }

    static answer request(invocation& of) {
        auto& by = of.context<http_requests>();
        auto given = of.read(1);
        if (!given) return answer::misused(std::move(given.error()));
        auto what = read(*given, by.limits_.timeout);
        if (!what) return answer::misused(std::move(what.error()));
        if (what->is_streamed) {
            if (by.streams_.size() >= by.limits_.streams)
                return answer::failed("too many responses are read in pieces");
            return begin_stream(by, std::move(*what), of.caller());
        }
        return perform(by.pool_, std::move(*what), by.limits_, by.receiving_);
    }
};

namespace {

constexpr library_function rows[] = {
    {.name = "http",
     .arguments = {{{.name = "request"}}},
     .takes = "a URL, or a table with url, and method, headers, body, stream and timeout in "
              "milliseconds",
     .help = "Sends a request, and returns a table with status, headers, body and url, or nil and "
             "why there is none.",
     .waits = true,
     .failure = on_failure::returns,
     .run = http_functions::request},
    {.name = "http_read",
     .arguments = {{{.name = "response", .kind = argument_kind::number},
                    {.name = "size", .kind = argument_kind::number, .is_optional = true}}},
     .takes = "a size of 1 to 16777216",
     .help = "The next piece of a response, of so many bytes at most; nil at its end.",
     .waits = true,
     .failure = on_failure::returns,
     .run = http_functions::read_stream},
    {.name = "http_close",
     .arguments = {{{.name = "response", .kind = argument_kind::number}}},
     .takes = "the number of a response",
     .help = "Closes a response that is read in pieces.",
     .run = http_functions::close_stream},
};

}  // namespace

std::string_view http_prelude() noexcept { return prelude_text; }

http_requests::http_requests(http_limits limits, std::string authorities)
    : limits_(limits), pool_(options_of(limits, std::move(authorities))) {}

http_requests::~http_requests() = default;

void http_requests::close_of(const call& of) noexcept {
    std::erase_if(streams_, [&of](const auto& each) {
        if (each.second->owner != &of) return false;
        each.second->close();
        return true;
    });
}

library http_requests::functions(const char* table) noexcept {
    library made;
    made.name = table;
    made.functions = rows;
    made.context = this;
    made.ended = [](void* self, const call& of) noexcept {
        static_cast<http_requests*>(self)->close_of(of);
    };
    return made;
}

}  // namespace eddy::script
