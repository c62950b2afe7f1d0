// Caches of the daemon for scripts.
#include "runtime/scripting/cache_library.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/wire/resp/reply_parser.hpp>

#include "runtime/host/data_commands.hpp"

#include <fmt/format.h>

#include <array>
#include <span>
#include <utility>

namespace eddy::runtime {
namespace {

using script::answer;
using script::argument_kind;
using script::function_result;
using script::invocation;
using script::library_function;
using script::value;

constexpr std::string_view prelude_text = R"lua(
local _, extend = ...
local calls, select, tostring, type, upper = caches, select, tostring, type, string.upper
local request, request_list = calls.request, calls.request_list

-- To read a global that is not there is an error.
local function global(read)
  local is_there, value = pcall(read)
  return is_there and value or nil
end
local outer = global(function() return eddy end) or {}

local methods = {}

local function call(self, name, ...)
  local count = select("#", ...)
  if count <= 3 then return request(self.id, name, count, ...) end
  local list = { name }
  for i = 1, count do
    local each = select(i, ...)
    local kind = type(each)
    if kind ~= "string" and kind ~= "number" then
      error("argument " .. i .. " of " .. tostring(name) .. " is a " .. kind .. ", and no text", 2)
    end
    list[i + 1] = tostring(each)
  end
  return request_list(self.id, list)
end

methods.call = call
function methods:get(key) return request(self.id, "GET", 1, key) end
function methods:incr(key, by)
  if by == nil then return request(self.id, "INCR", 1, key) end
  return request(self.id, "INCRBY", 2, key, by)
end

-- True; false where nx or xx keep it from being set.
local function done(reply, why)
  if reply ~= nil then return true end
  if why == nil then return false end
  return nil, why
end

function methods:set(key, value, options)
  if options == nil then return done(request(self.id, "SET", 2, key, value)) end
  if type(options) ~= "table" then error("the options of set() are no table", 2) end
  local words, count = {}, 0
  for name, of in pairs(options) do
    if name == "ttl" then
      if type(of) ~= "number" or not (of > 0) then error("ttl is no number of seconds above 0", 2) end
      words[count + 1], words[count + 2] = "PX", ("%d"):format(math.max(1, of * 1000))
      count = count + 2
    elseif name == "nx" or name == "xx" or name == "keepttl" then
      if of then
        count = count + 1
        words[count] = upper(name)
      end
    else
      error("set() has no option " .. tostring(name) .. "; it has ttl, nx, xx and keepttl", 2)
    end
  end
  return done(call(self, "SET", key, value, unpack(words, 1, count)))
end

-- Any other name is that of a command: c:hset("k", "f", 1).
setmetatable(methods, { __index = function(_, name)
  if type(name) ~= "string" then return nil end
  local function method(self, ...) return call(self, name, ...) end
  methods[name] = method
  return method
end })
local class = { __index = methods, __metatable = false }

extend(outer, "cache", function(name, login)
  if type(name) ~= "string" or name == "" then error("cache() takes the name of a cache", 2) end
  if login == nil then login = {} end
  if type(login) ~= "table" then error("cache() takes a name and a table with user and password", 2) end
  for field, of in pairs(login) do
    if (field ~= "user" and field ~= "password") or type(of) ~= "string" then
      error("cache() takes a name and a table with user and password", 2)
    end
  end
  return setmetatable({ id = calls.open(name, login.user, login.password) }, class)
end)
eddy = outer
)lua";

std::string with_limit(std::string_view what, std::size_t most, std::string_view unit) {
    return fmt::format("the reply has more {} than {} {}", what, most, unit);
}

/// Runs on the cache's loop.
task<waiting_reply> run_there(std::shared_ptr<local_cache> at, local_cache::login by,
                              std::vector<std::string> words, reply_bytes sum) {
    // Changes nothing where its reply has no room.
    if (sum->load(std::memory_order_relaxed) >= max_waiting_replies)
        co_return waiting_reply(waiting_reply::full);
    const std::vector<std::string_view> views(words.begin(), words.end());
    byte_buffer reply;
    auto rest = at->begin(by, {.argv = views.data(), .argc = views.size()}, reply);
    if (!rest) co_return waiting_reply(reply.text(), std::move(sum));
    const std::string later = co_await std::move(*rest);
    co_return waiting_reply(later, std::move(sum));
}

function_result result_of(std::string_view reply) {
    auto read = read_cache_reply(reply);
    if (!read) return std::unexpected(std::move(read.error()));
    return script::values_of(std::move(*read));
}

task<function_result> ask_there(std::shared_ptr<local_cache> at, local_cache::login by,
                                std::vector<std::string> words, reply_bytes sum) {
    EDDY_ASSERT(at != nullptr && !words.empty());
    const executor home = at->home();
    auto reply = co_await resume_on(
        home, run_there(std::move(at), std::move(by), std::move(words), std::move(sum)));
    if (!reply) co_return std::unexpected("the cache has stopped");
    co_return result_of(reply->text());
}

task<function_result> await_here(task<std::string> rest) {
    const std::string reply = co_await std::move(rest);
    co_return result_of(reply);
}

}  // namespace

std::string_view cache_prelude() noexcept { return prelude_text; }

// --- Replies ----------------------------------------------------------------------------------

namespace {

/// Reader of one reply's events.
class reply_reader {
public:
    explicit reply_reader(std::string_view reply) noexcept : left_(reply) {}

    std::expected<value, std::string> read() {
        if (left_.size() > max_cache_reply)
            return std::unexpected(with_limit("content", max_cache_reply, "bytes"));
        const auto first = next();
        if (!first) return std::unexpected(fault_);
        if (first->type == resp::reply_type::error)
            return std::unexpected(std::string(first->text));
        if (first->type == resp::reply_type::null) return value();
        return value_of(*first);
    }

private:
    const resp::reply_event* next() {
        got_ = parser_.next(left_);
        if (got_.status != resp::parse_status::complete) {
            fault_ = "the cache has sent no reply";
            return nullptr;
        }
        left_.remove_prefix(got_.consumed);
        return &got_.event;
    }

    std::expected<value, std::string> value_of(const resp::reply_event& of) {
        using resp::reply_type;
        switch (of.type) {
            case reply_type::integer: return value(of.integer);
            case reply_type::null: return value(false);
            case reply_type::array: return list_of(of.count, of.depth);
            case reply_type::simple:
            case reply_type::error:
            case reply_type::bulk: return value(of.text);
            default: return std::unexpected("the cache has sent no reply of RESP2");
        }
    }

    std::expected<value, std::string> list_of(std::uint64_t count, std::uint32_t depth) {
        if (elements_ + count > max_cache_elements)
            return std::unexpected(with_limit("values", max_cache_elements, "in lists"));
        elements_ += static_cast<std::size_t>(count);
        if (depth >= script::max_value_depth - 1)
            return std::unexpected("the reply has too many lists within each other");
        script::table made;
        made.elements.reserve(static_cast<std::size_t>(count));
        for (std::uint64_t i = 0; i < count; ++i) {
            const auto* const each = next();
            if (each == nullptr) return std::unexpected(fault_);
            auto element = value_of(*each);
            if (!element) return element;
            made.elements.push_back(std::move(*element));
        }
        return value(std::move(made));
    }

    std::string_view left_;
    resp::reply_parser parser_;
    resp::reply_outcome got_;
    std::size_t elements_ = 0;
    std::string fault_;
};

}  // namespace

std::expected<value, std::string> read_cache_reply(std::string_view reply) {
    return reply_reader(reply).read();
}

// --- Functions --------------------------------------------------------------------------------

struct cache_functions {
    static answer open(invocation& of) {
        auto& caches = of.context<script_caches>();
        script_caches::used_cache made{.name = std::string(of.text(1)), .by = {}};
        if (of.has(2)) made.by.user = of.text(2);
        if (of.has(3)) made.by.password = of.text(3);
        for (std::size_t i = 0; i < caches.all_.size(); ++i)
            if (caches.all_[i]->name == made.name && caches.all_[i]->by == made.by)
                return script::values_of(i + 1);
        if (caches.all_.size() >= max_script_caches)
            return answer::failed(
                fmt::format("the script uses {} caches, which is the limit", max_script_caches));
        caches.all_.push_back(std::make_unique<script_caches::used_cache>(std::move(made)));
        return script::values_of(caches.all_.size());
    }

    /// request(id, name, count, …): at most three arguments.
    static answer request(invocation& of) {
        constexpr int first = 4;
        constexpr std::size_t most = 3;
        auto* const which = cache_of(of);
        const double count = of.number(3);
        if (which == nullptr || !(count >= 0 && count <= most)) return answer::misused();
        std::array<std::string_view, most + 1> words;
        words[0] = of.text(2);
        const auto size = static_cast<std::size_t>(count) + 1;
        for (std::size_t i = 1; i < size; ++i) {
            const int at = first + static_cast<int>(i) - 1;
            if (!of.has(at))
                return answer::misused(fmt::format("argument {} of {} is nil", i, words[0]));
            words[i] = of.text(at);
        }
        return run(of, *which, std::span(words).first(size));
    }

    static answer request_list(invocation& of) {
        auto* const which = cache_of(of);
        if (which == nullptr) return answer::misused();
        const auto list = of.read(2);
        if (!list) return answer::misused("the command is too long: it contains " + list.error());
        std::vector<std::string_view> words;
        for (const value& each : list->fields()->elements) {
            if (each.text() == nullptr) return answer::misused();
            words.emplace_back(*each.text());
        }
        if (words.empty()) return answer::misused();
        return run(of, *which, words);
    }

private:
    static script_caches::used_cache* cache_of(const invocation& of) noexcept {
        const auto& all = of.context<script_caches>().all_;
        const double id = of.number(1);
        if (!(id >= 1 && id <= static_cast<double>(all.size()))) return nullptr;
        return all[static_cast<std::size_t>(id) - 1].get();
    }

    static answer run(invocation& of, script_caches::used_cache& which,
                      std::span<const std::string_view> words) {
        constexpr std::size_t bytes_a_step = 32;
        auto& caches = of.context<script_caches>();
        if (std::string why = refuse_data_command(words, "scripts of other runtimes"); !why.empty())
            return answer::failed(std::move(why));
        const auto at = caches.find(which);
        if (!at) return answer::failed(at.error());
        if (!(*at)->home().is_current())
            return ask_there(which.at, which.by, {words.begin(), words.end()}, caches.waiting_);
        byte_buffer& reply = caches.replies_;
        reply.clear();
        auto rest = (*at)->begin(which.by, {.argv = words.data(), .argc = words.size()}, reply);
        if (rest) return await_here(std::move(*rest));
        of.count(reply.size() / bytes_a_step);
        auto read = read_cache_reply(reply.text());
        constexpr std::size_t kept = 64 * 1024;
        if (reply.capacity() > kept)
            reply = byte_buffer();
        else
            reply.clear();
        if (!read) return answer::failed(std::move(read.error()));
        return script::values_of(std::move(*read));
    }
};

std::expected<local_cache*, std::string> script_caches::find(used_cache& which) const {
    if (which.at != nullptr && !which.at->is_closed()) return which.at.get();
    which.at = nullptr;
    if (daemon_ == nullptr) return std::unexpected("there is no daemon here");
    auto found = daemon_->find_cache(which.name);
    if (!found) return std::unexpected(std::move(found.error().message));
    which.at = std::move(*found);
    return which.at.get();
}

namespace {

constexpr std::string_view takes =
    "a cache of eddy.cache(), a command and its arguments, which are texts";
constexpr script::argument optional_text(std::string_view name) {
    return {.name = name, .kind = argument_kind::text, .is_optional = true};
}

constexpr std::array<library_function, 3> rows = {{
    {.name = "open",
     .arguments = {{{.name = "name", .kind = argument_kind::text},
                    optional_text("user"),
                    optional_text("password")}},
     .takes = "the name of a cache, a user and a password",
     .help = "Number of a cache.",
     .run = cache_functions::open},
    {.name = "request",
     .arguments = {{{.name = "id", .kind = argument_kind::number},
                    {.name = "command", .kind = argument_kind::text},
                    {.name = "count", .kind = argument_kind::number},
                    optional_text("a"),
                    optional_text("b"),
                    optional_text("c")}},
     .takes = takes,
     .help = "Runs a command of at most three arguments.",
     .waits = true,
     .failure = script::on_failure::returns,
     .run = cache_functions::request},
    {.name = "request_list",
     .arguments = {{{.name = "id", .kind = argument_kind::number},
                    {.name = "command", .kind = argument_kind::table}}},
     .takes = takes,
     .help = "Runs a command.",
     .waits = true,
     .failure = script::on_failure::returns,
     .run = cache_functions::request_list},
}};

}  // namespace

script::library script_caches::functions() noexcept {
    script::library made;
    made.name = "caches";
    made.functions = rows;
    made.context = this;
    return made;
}

}  // namespace eddy::runtime
