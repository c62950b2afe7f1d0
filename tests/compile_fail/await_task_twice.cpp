// Awaiting a task without giving it up: it could be awaited again.
// Refused: rvalue|discards qualifiers|passing .* as .this.|no member named 'await_ready'
#include <eddy/io/task.hpp>

#include <utility>

eddy::task<int> work();

eddy::task<> use() {
    eddy::task<int> once = work();
#ifdef EDDY_REFUSED
    static_cast<void>(co_await once);
#endif
    static_cast<void>(co_await std::move(once));
}
