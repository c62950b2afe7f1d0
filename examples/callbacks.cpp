// Callbacks and coroutines: how each calls the other. docs/from-asio.md shows the parts.
#include <eddy/io/channel.hpp>
#include <eddy/io/executor.hpp>
#include <eddy/io/loop.hpp>
#include <eddy/io/promise.hpp>
#include <eddy/io/task.hpp>

#include <cstdio>
#include <functional>
#include <future>
#include <memory>
#include <thread>
#include <utility>

namespace {

using namespace eddy;
using namespace std::chrono_literals;

// ---- a library of callbacks, as many are: it calls back on a thread of its own

class adder {
public:
    using done = void (*)(void* user, int sum);

    ~adder() { finish(); }

    void add(int a, int b, done call, void* user) {
        finish();
        thread_ = std::thread([=] { call(user, a + b); });
    }
    void add(int a, int b, std::function<void(int sum)> call) {
        finish();
        thread_ = std::thread([a, b, call = std::move(call)] {
            if (a >= 0 && b >= 0) call(a + b);  // it forgets the others
        });
    }
    void count(int end, std::function<void(int number)> call) {
        finish();
        thread_ = std::thread([end, call = std::move(call)] {
            for (int i = 0; i < end; ++i) call(i);
        });
    }

private:
    void finish() {
        if (thread_.joinable()) thread_.join();
    }

    std::thread thread_;
};

// ---- from callbacks to coroutines

task<result<int>> sum_of(adder& library, int a, int b) {
    auto answer = std::make_unique<promise<int>>();
    const future<int> sum = answer->get_future();
    const auto done = [](void* user, int value) {
        const std::unique_ptr<promise<int>> to(static_cast<promise<int>*>(user));
        to->set(int{value});
    };
    library.add(a, b, done, answer.release());  // the callback frees it
    co_return co_await sum.wait();
}

task<result<int>> sum_of_function(adder& library, int a, int b) {
    auto answer = std::make_shared<promise<int>>();
    const future<int> sum = answer->get_future();
    library.add(a, b, [answer = std::move(answer)](int value) { answer->set(int{value}); });
    co_return co_await sum.wait();
}

task<int> sum_of_all(adder& library, int end) {
    channel<int> numbers(16);
    const auto home = executor::current();
    library.count(end, [&numbers, home](int number) {
        const result<> posted = home.post([&numbers, number] {
            const result<> sent = numbers.try_send(int{number});
            if (!sent) std::puts("a number is lost: the channel is full");
        });
        if (!posted) std::puts("a number is lost: the loop is gone");
    });
    int sum = 0;
    for (int i = 0; i < end; ++i) sum += (co_await numbers.receive()).value_or(0);
    co_return sum;
}

// ---- from callbacks, and from threads without a loop, to coroutines

task<> answer(std::promise<int> to, int a, int b) {
    static_cast<void>(co_await sleep_for(1ms));
    to.set_value(a + b);
}

int ask_blocking(const executor& there, int a, int b) {
    std::promise<int> sum;
    std::future<int> later = sum.get_future();
    const result<> posted = there.post(answer(std::move(sum), a, b));
    return posted ? later.get() : -1;
}

task<bool> ask_from_another_thread() {
    promise<int> asked;
    const future<int> got = asked.get_future();
    std::thread other([there = executor::current(), to = std::move(asked)]() mutable {
        to.set(ask_blocking(there, 1, 2));
    });
    const result<int> sum = co_await got.wait();
    other.join();
    co_return sum == 3;
}

task<int> everything() {
    adder library;
    int failed = 0;
    failed += co_await sum_of(library, 1, 2) == 3 ? 0 : 1;
    failed += co_await sum_of_function(library, 1, 2) == 3 ? 0 : 1;
    const auto forgotten = co_await sum_of_function(library, -1, 2);
    failed += !forgotten && forgotten.error() == errc::closed ? 0 : 1;
    failed += co_await sum_of_all(library, 10) == 45 ? 0 : 1;
    failed += co_await ask_from_another_thread() ? 0 : 1;
    co_return failed;
}

}  // namespace

int main() {
    const int failed = eddy::run(everything());
    if (failed == 0) std::puts("all of it works");
    return failed;
}
