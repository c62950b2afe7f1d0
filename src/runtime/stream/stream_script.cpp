// Script of the lua backend: loading, calls, and what scripts call.
#include "runtime/stream/stream_script.hpp"

#include <eddy/base/assert.hpp>
#include <eddy/base/byte_buffer.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/wire/sse.hpp>

#include "lua/errors.hpp"
#include "runtime/stream/answer.hpp"

#include <time.h>

#include <new>
#include <utility>

namespace eddy::runtime::stream {
namespace {

constexpr std::string_view too_long = "script_too_long";
constexpr std::string_view killed = "script_killed";

/// Time that the thread has had the processor. What others take of a busy machine is not the
/// script's.
std::chrono::nanoseconds processor_time() noexcept {
    timespec now{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return std::chrono::seconds(now.tv_sec) + std::chrono::nanoseconds(now.tv_nsec);
}

// Marks the values of a coroutine that a function of ours has suspended: scripts can make no such
// pointer.
constexpr char mark = 0;
void* mark_pointer() noexcept { return const_cast<char*>(&mark); }

enum class operation : std::uint8_t { send, event, sleep };

/// What a protected function works with; its failure has a text.
struct job {
    stream_script* script = nullptr;
    const request* from = nullptr;
    lua::stack at = nullptr;
    int kept = 0;
    int chunk = 0;
    int handle = 0;
    int decode = 0;
    std::string failure = {};
    bool lacks_memory = false;
};

void describe(lua::stack failed, lua::stack in, job& to) noexcept {
    try {
        to.failure = lua::describe_failure(failed, in, stream_script::max_error);
    } catch (const std::bad_alloc&) {
        to.lacks_memory = true;
    }
}

}  // namespace

/// Functions of Lua.
class stream_script::interfaces {
public:
    static void furnish(lua::stack in) {
        in.push_copy(1);
        in.set_functions({{"send", send}, {"event", event}, {"sleep", sleep}});
        in.pop();
        // LuaJIT's own can be suspended, the sandbox's cannot.
        in.push_global("pcall");
        in.set_field(1, "pcall");
    }

    static int load(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.pointer_at(1));
        in.set_height(0);
        // Its own globals are a table in front of the sandbox's, which cannot be changed.
        in.push_table();
        in.push_table();
        in.push_global("_G");
        in.set_field(-2, "__index");
        in.set_metatable(-2);
        const lua::stack at = in.push_coroutine();
        in.push_kept(todo.chunk);
        in.push_copy(1);
        in.set_environment(-2);
        in.move_to(at, 1);
        switch (at.resume(0)) {
            case lua::progress::ended: break;
            case lua::progress::suspended: in.raise_text("the file's own statements may not yield");
            case lua::progress::failed: describe(at, in, todo); return 0;
        }
        in.push_raw_field(1, "handle");
        if (!in.is_function(-1)) in.raise_text("it defines no function handle(request)");
        todo.handle = in.keep();
        in.push_global("cjson");
        in.push_field(-1, "decode");
        todo.decode = in.keep();
        return 0;
    }

    static int begin(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.pointer_at(1));
        const request& from = *todo.from;
        in.set_height(0);
        todo.at = in.push_coroutine();
        in.push_kept(todo.handle);
        in.push_kept(todo.decode);
        in.push_text(from.message.empty() ? std::string_view("{}") : from.message);
        in.call(1, 1);
        // Texts in any case, whatever the message has.
        in.set_text("user_id", from.user_id);
        in.set_text("prompt", from.prompt);
        in.set_text("model", from.model);
        in.set_text("test_pattern", from.test_pattern);
        in.set_text("request_id", from.request_id);
        in.move_to(todo.at, 2);
        todo.kept = in.keep();
        return 0;
    }

    static int read_failure(lua_State* raw) {
        const lua::stack in(raw);
        job& todo = *static_cast<job*>(in.pointer_at(1));
        describe(todo.at, in, todo);
        return 0;
    }

private:
    /// Its arguments are from index 1 on.
    static int suspend(lua::stack in, operation what) {
        const int height = in.height();
        in.push_pointer(mark_pointer());
        in.insert(1);
        in.push_number(static_cast<double>(what));
        in.insert(2);
        return in.suspend(height + 2);
    }
    static void require_own_coroutine(lua::stack in) {
        const call* const running =
            static_cast<stream_script&>(lua::sandbox::of(in).supervised_by()).running_;
        if (running == nullptr)
            in.raise_text("send(), event() and sleep() can be called within handle() alone");
        if (running->at_.raw() != in.raw())
            in.raise_text(
                "send(), event() and sleep() cannot be called within a coroutine of the script's");
    }

    static int send(lua_State* raw) {
        const lua::stack in(raw);
        require_own_coroutine(in);
        if (!in.has_text(1)) in.raise_text("send() takes a text");
        if (in.text_at(1).size() > max_event) in.raise_text("the text is larger than 256 KiB");
        in.set_height(1);
        return suspend(in, operation::send);
    }

    static int event(lua_State* raw) {
        const lua::stack in(raw);
        require_own_coroutine(in);
        if (!in.has_text(1) || !in.has_text(2)) in.raise_text("event() takes a name and a text");
        if (in.text_at(1).find_first_of("\r\n") != std::string_view::npos)
            in.raise_text("the name of an event has no line ends");
        if (in.text_at(1).size() + in.text_at(2).size() > max_event)
            in.raise_text("the text is larger than 256 KiB");
        in.set_height(2);
        return suspend(in, operation::event);
    }

    static int sleep(lua_State* raw) {
        const lua::stack in(raw);
        require_own_coroutine(in);
        constexpr double most = std::chrono::duration<double, std::milli>(max_sleep).count();
        if (!in.has_number(1) || !(in.number_at(1) >= 0 && in.number_at(1) <= most))
            in.raise_text("sleep() takes milliseconds, of a day at most");
        in.set_height(1);
        return suspend(in, operation::sleep);
    }
};

stream_script::stream_script() : machine_(*this, max_bytes, interfaces::furnish) {}

stream_script::~stream_script() { EDDY_ASSERT(!fiber_.is_suspended() && calls_ == 0); }

std::expected<void, std::string> stream_script::load(std::string_view text, std::string_view name) {
    EDDY_ASSERT(handle_ == 0);
    begin_run();
    job todo;
    std::string why;
    const std::string chunk_name = "@" + std::string(name);
    todo.chunk = machine_.compile(text, chunk_name.c_str(), why);
    if (todo.chunk == 0) return std::unexpected(why.substr(0, max_error));
    const bool is_good = machine_.call_protected(interfaces::load, &todo);
    machine_.check_always(false);
    ending_ = {};
    if (!is_good) {
        const lua::stack in = machine_.values();
        if (todo.failure.empty() && in.has_text(-1))
            todo.failure = std::string(name) + ": " + std::string(in.text_at(-1));
        in.pop();
    }
    if (todo.lacks_memory) return std::unexpected("not enough memory");
    if (!todo.failure.empty()) return std::unexpected(todo.failure);
    handle_ = todo.handle;
    decode_ = todo.decode;
    return {};
}

task<stream_script::step> stream_script::run(call& of) {
    const auto turn = co_await turn_.lock();
    if (!turn || of.is_gone_) co_return step();
    running_ = &of;
    begin_run();
    bool is_over = fiber_.start(
        [](void* self) {
            stream_script& me = *static_cast<stream_script*>(self);
            try {
                me.go(*me.running_);
            } catch (const std::bad_alloc&) {
                me.running_->next_ = {.what = wish::fail, .reason = "no_memory"};
            }
        },
        this);
    while (!is_over) {
        co_await loop::current().yield();
        if (of.is_gone_) ending_ = killed;
        slice_begun_ = processor_time();
        is_over = fiber_.resume();
    }
    running_ = nullptr;
    machine_.check_always(false);
    ending_ = {};
    step next = std::exchange(of.next_, step());
    if (of.is_gone_) next = step();
    co_return next;
}

/// On the fiber, where time is sliced.
void stream_script::go(call& of) {
    for (const int each : dropped_) machine_.values().forget(each);
    dropped_.clear();
    collect();
    const bool is_new = of.kept_ == 0;
    if (is_new && !begin(of)) return;
    if (!is_new) of.at_.set_height(0);
    switch (of.at_.resume(is_new ? 1 : 0)) {
        case lua::progress::ended: of.next_ = {.what = wish::end}; break;
        case lua::progress::suspended: read_wish(of); break;
        case lua::progress::failed: read_failure(of); break;
    }
}

bool stream_script::begin(call& of) {
    // So that drop() never allocates; it is empty here.
    if (dropped_.capacity() <= calls_) dropped_.reserve(2 * calls_ + 16);
    job todo;
    todo.from = of.from_.get();
    todo.handle = handle_;
    todo.decode = decode_;
    if (!machine_.call_protected(interfaces::begin, &todo)) {
        const lua::stack in = machine_.values();
        in.pop();
        of.next_ = {.what = wish::fail,
                    .text = "not enough memory for another stream",
                    .reason = "script_failed"};
        return false;
    }
    of.kept_ = todo.kept;
    of.at_ = todo.at;
    of.from_.reset();
    ++calls_;
    return true;
}

void stream_script::read_wish(call& of) {
    const lua::stack in = of.at_;
    if (in.height() < 3 || in.type_at(1) != lua::type::pointer ||
        in.pointer_at(1) != mark_pointer()) {
        of.next_ = {.what = wish::fail,
                    .text = "handle() may not yield; it waits by sleep()",
                    .reason = "script_failed"};
        return;
    }
    switch (static_cast<operation>(in.number_at(2))) {
        case operation::send:
            of.next_ = {.what = wish::send, .text = content_event(in.text_at(3))};
            break;
        case operation::event: {
            sse::event made;
            made.type = in.text_at(3);
            made.data = in.text_at(4);
            byte_buffer bytes;
            const result<> written = sse::write_event(bytes, made);
            EDDY_ASSERT(written);
            of.next_ = {.what = wish::send, .text = std::string(bytes.text())};
            break;
        }
        case operation::sleep:
            of.next_ = {.what = wish::sleep,
                        .pause = std::chrono::duration_cast<duration>(
                            std::chrono::duration<double, std::milli>(in.number_at(3)))};
            break;
    }
}

void stream_script::read_failure(call& of) {
    job todo;
    todo.at = of.at_;
    const bool is_read = machine_.call_protected(interfaces::read_failure, &todo);
    if (!is_read) machine_.values().pop();
    if (!is_read || todo.lacks_memory) todo.failure = "not enough memory";
    collected_ = 0;  // what it had is garbage as soon as it is dropped
    of.next_ = {.what = wish::fail,
                .text = std::move(todo.failure),
                .reason = ending_.empty() ? "script_failed" : ending_};
}

void stream_script::drop(call& of) noexcept {
    if (of.kept_ == 0) return;
    // Another one may be left in the middle: the state is touched by the next that runs.
    dropped_.push_back(std::exchange(of.kept_, 0));
    --calls_;
}

void stream_script::collect() noexcept {
    // Each collection goes through all that is used, so some of it must be new.
    const std::size_t used = machine_.used_bytes();
    if (used < collected_) collected_ = used;
    if (used <= max_bytes / 2 || used - collected_ < max_bytes / 16) return;
    machine_.collect_if_full();
    collected_ = machine_.used_bytes();
}

void stream_script::begin_run() noexcept {
    used_ = {};
    slice_begun_ = processor_time();
    ending_ = {};
}

void stream_script::check(lua::stack in) {
    if (ending_.empty() && used_ + (processor_time() - slice_begun_) > max_run) ending_ = too_long;
    if (ending_.empty()) check_quietly();
    if (ending_.empty()) return;
    // From now on at every instruction: no pcall() of the script's keeps it alive.
    lua::sandbox::of(in).check_always(true);
    lua::raise_here(in, ending_ == too_long ? "it computes for too long without a wait"
                                            : "its client has gone");
}

void stream_script::check_quietly() {
    if (!fiber_.is_inside()) return;
    const std::chrono::nanoseconds elapsed = processor_time() - slice_begun_;
    if (elapsed < slice) return;
    used_ += elapsed;
    fiber_.suspend();
}

}  // namespace eddy::runtime::stream
