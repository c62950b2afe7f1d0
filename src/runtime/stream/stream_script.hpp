// Script of the lua backend: one Lua state, in which each stream is a coroutine of Lua's, and the
// budgets of time and memory that keep it from holding up the loop.
//
// A stream's coroutine leaves its values and is suspended by send(), event() and sleep(); what they
// ask for is the caller's to do. A stream that computes for longer than a slice is left in the
// middle, on a stack of its own, and goes on in the loop's next turn; the script's other streams
// wait meanwhile, since they share its state, but what else the loop serves does not.
#pragma once

#include <eddy/io/semaphore.hpp>
#include <eddy/io/task.hpp>
#include <eddy/io/timer.hpp>

#include "lua/fiber.hpp"
#include "lua/sandbox.hpp"
#include "runtime/stream/request.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <expected>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace eddy::runtime::stream {

/// One loop's thread. No stream may run when it dies.
class stream_script final : lua::supervisor {
public:
    /// Bytes of the values of all streams; beyond that the stream that asks for more fails.
    static constexpr std::size_t max_bytes = std::size_t{64} << 20;
    /// Time of the processor in a row, at most.
    static constexpr std::chrono::microseconds slice{1000};
    /// Time of the processor between two of a stream's waits; beyond that the stream fails. The
    /// same for the file's own statements.
    static constexpr std::chrono::milliseconds max_run{500};
    /// Bytes of what send() or event() is given.
    static constexpr std::size_t max_event = std::size_t{256} << 10;
    /// Longest sleep().
    static constexpr std::chrono::hours max_sleep{24};
    /// Bytes of an error's text.
    static constexpr std::size_t max_error = 1000;

    stream_script();
    stream_script(const stream_script&) = delete;
    stream_script& operator=(const stream_script&) = delete;
    ~stream_script();

    /// Compiles the text and runs it, which defines the function handle(). `name` is what errors
    /// call it. The error is one line that names the script's. Once, before all streams.
    std::expected<void, std::string> load(std::string_view text, std::string_view name);

    /// What a stream waits for.
    enum class wish : std::uint8_t {
        send,      ///< `text` are bytes for the client
        sleep,     ///< for `pause`
        end,       ///< handle() has returned
        fail,      ///< `text` is the error, `reason` the metrics'
        vanished,  ///< its client has gone
    };
    struct step {
        wish what = wish::vanished;
        std::string text = {};
        duration pause{};
        std::string_view reason = {};
    };

    /// Call of handle() for a request. It lives until run() has returned.
    class call {
    public:
        /// `is_gone` becomes true when the client has gone.
        call(stream_script& in, std::unique_ptr<request> from, const bool& is_gone) noexcept
            : in_(in), from_(std::move(from)), is_gone_(is_gone) {}
        call(const call&) = delete;
        call& operator=(const call&) = delete;
        ~call() { in_.drop(*this); }

    private:
        friend class stream_script;
        stream_script& in_;
        std::unique_ptr<request> from_;  // until handle() has been called
        const bool& is_gone_;
        int kept_ = 0;  // its coroutine; 0: not begun
        lua::stack at_ = nullptr;
        step next_;
    };
    /// Begins the call, or goes on with it until its next wait.
    task<step> run(call& of);

private:
    class interfaces;  // what scripts call

    void go(call& of);
    bool begin(call& of);
    void read_wish(call& of);
    void read_failure(call& of);
    void drop(call& of) noexcept;
    void begin_run() noexcept;
    void collect() noexcept;
    void check(lua::stack in) override;
    void check_quietly() override;
    bool is_ending() const noexcept override { return !ending_.empty(); }

    lua::sandbox machine_;
    lua::fiber fiber_;
    async_mutex turn_;
    int handle_ = 0;
    int decode_ = 0;
    call* running_ = nullptr;
    std::vector<int> dropped_;   // coroutines of calls that are over
    std::size_t calls_ = 0;      // that have one
    std::size_t collected_ = 0;  // bytes that were used after the last collection
    std::chrono::nanoseconds slice_begun_{};
    std::chrono::nanoseconds used_{};  // in the slices before
    std::string_view ending_;          // the reason, while what runs is to end
};

}  // namespace eddy::runtime::stream
