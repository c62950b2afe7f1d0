// Calls of functions on worker threads, and what goes there and back.
#include "script/blocking_calls.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/io/event.hpp>
#include <eddy/io/loop.hpp>

#include "lua/moved_function.hpp"

#include <array>
#include <new>
#include <system_error>
#include <utility>

namespace eddy::script {
namespace {

constexpr std::array<const char*, 1> names = {"run"};
constexpr const char* no_memory_text = "not enough memory";
constexpr int max_upvalues = 60;  // as many as Lua's functions have

/// A text of Lua's in quotes.
std::string quoted_text(std::string_view text) {
    std::string made = "'";
    for (const char each : text) {
        const auto code = static_cast<unsigned char>(each);
        made += '\\';
        for (const int part : {code / 100, code / 10 % 10, code % 10})
            made += static_cast<char>('0' + part);
    }
    return made + "'";
}

std::string text_of_threads(const std::vector<std::string>& modules) {
    std::string path;
    for (const std::string& each : modules) path += each + "/?.lua;" + each + "/?/init.lua;";
    return "package.path = " + quoted_text(path) +
           " .. package.path function run(what, ...) return what(...) end";
}

}  // namespace

/// A call under way. It outlives the one that awaits it.
struct blocking_calls::pending {
    function_result result = {};
    event done = {};
};

class blocking_calls::work final : public job {
public:
    std::string code;
    std::vector<std::pair<int, value>> upvalues;
    values arguments;
    std::chrono::nanoseconds limit{};
    std::shared_ptr<pending> to;

    void run(lua::blocking_state& in) override {
        auto called = in.call(
            0, limit, [this](lua::stack its) { return push(its); }, static_cast<int>(max_values),
            [this](lua::stack its) { read(its); });
        if (!called) result_ = std::unexpected(std::move(called.error()));
    }
    void fail_without_memory() noexcept override { lacks_memory_ = true; }
    void complete() override {
        EDDY_ASSERT(to != nullptr && !to->done.is_set());
        to->result =
            lacks_memory_ ? function_result(std::unexpected(no_memory_text)) : std::move(result_);
        to->done.set();
    }

private:
    int push(lua::stack its) const {
        EDDY_ASSERT(!code.empty() && arguments.size() < max_values);
        its.checkstack(static_cast<int>(max_values) + read_slots, "too many values");
        lua::push_dumped(its, code);
        const int function = its.gettop();
        for (const auto& [which, each] : upvalues) {
            push_value(its, each);
            lua::set_upvalue(its, function, which);
        }
        for (const value& each : arguments) push_value(its, each);
        return 1 + static_cast<int>(arguments.size());
    }

    void read(lua::stack its) {
        its.checkstack(read_slots, "too many results");
        result_ = values();
        std::size_t count = 0;
        for (int i = 1; i <= static_cast<int>(max_values); ++i) {
            auto one = read_value(its, i);
            if (!one) {
                result_ = std::unexpected("blocking(): the function returned " + one.error());
                return;
            }
            if (!one->is_nil()) count = static_cast<std::size_t>(i);
            result_->push_back(std::move(*one));
        }
        EDDY_ASSERT(count <= result_->size());
        result_->resize(count);
    }

    function_result result_ = {};
    bool lacks_memory_ = false;
};

script_threads& blocking_calls::threads() {
    EDDY_ASSERT(options_.is_allowed);
    if (threads_) return *threads_;
    script_threads_options made;
    made.threads = options_.limits.threads;
    made.text = text_of_threads(options_.modules);
    made.name = "eddy.blocking";
    made.owner = options_.owner;
    made.functions = names;
    made.limits.bytes = options_.limits.bytes;
    made.max_waiting = options_.limits.waiting;
    threads_ = std::make_unique<script_threads>(std::move(made),
                                                static_cast<script_threads_observer&>(*this));
    return *threads_;
}

answer blocking_calls::submit(invocation& of) {
    if (!options_.is_allowed) return answer::misused("blocking() is for scripts with --lua-unsafe");
    if (loop::current().kind() == io_backend_kind::sim)
        return answer::failed("blocking(): there are no other threads");
    auto made = std::make_unique<work>();
    made->limit = options_.limits.time;
    made->code = of.dump(1);
    if (made->code.empty()) return answer::misused("blocking() takes a function of the script's");
    for (int i = 1; i <= max_upvalues; ++i) {
        auto one = of.read_upvalue(1, i);
        if (!one) return answer::misused("blocking(): " + one.error());
        if (!*one) break;
        made->upvalues.emplace_back(i, std::move(**one));
    }
    for (int i = 2; i <= static_cast<int>(max_arguments); ++i) {
        auto one = of.read(i);
        if (!one) return answer::misused("blocking() cannot pass " + one.error());
        made->arguments.push_back(std::move(*one));
    }
    auto to = std::make_shared<pending>();
    made->to = to;
    try {
        if (!threads().submit(std::move(made)))
            return answer::failed("blocking(): " + std::to_string(options_.limits.waiting) +
                                  " calls wait already");
    } catch (const std::system_error&) {
        return answer::failed("blocking(): the system gives no thread");
    }
    return [](std::shared_ptr<pending> its) -> task<function_result> {
        const auto ended = co_await its->done.wait();
        if (!ended) co_return std::unexpected(ended.error().message());
        co_return std::move(its->result);
    }(std::move(to));
}

struct blocking_functions {
    static answer run(invocation& of) { return of.context<blocking_calls>().submit(of); }
};

namespace {

constexpr argument any_argument{.name = "value", .is_optional = true};
constexpr library_function rows[] = {
    {.name = "blocking",
     .arguments = {{{.name = "fn", .kind = argument_kind::function},
                    any_argument,
                    any_argument,
                    any_argument,
                    any_argument,
                    any_argument}},
     .takes = "a function and up to five values",
     .help = "Calls the function on another thread, where it may block, with io, os and modules of "
             "C, and returns its results. With --lua-unsafe.",
     .waits = true,
     .run = blocking_functions::run},
};

}  // namespace

library blocking_calls::functions(const char* table) noexcept {
    library made;
    made.name = table;
    made.functions = rows;
    made.context = this;
    return made;
}

}  // namespace eddy::script
