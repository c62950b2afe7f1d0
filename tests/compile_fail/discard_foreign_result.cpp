// An ignored result of an awaitable that is not Eddy's.
// Refused: nodiscard|unused-result
#include <eddy/base/result.hpp>
#include <eddy/io/task.hpp>

#include <coroutine>

struct answer {
    bool await_ready() const noexcept { return true; }
    void await_suspend(std::coroutine_handle<>) const noexcept {}
    eddy::result<int> await_resume() const noexcept { return 1; }
};

eddy::task<> use() {
#ifdef EDDY_REFUSED
    co_await answer();
#endif
    static_cast<void>(co_await answer());
}
