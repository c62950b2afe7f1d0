// Calling a coroutine and forgetting it: it would never run.
// Refused: nodiscard|unused-result|unused-value
#include <eddy/io/task.hpp>

eddy::task<> work();

eddy::task<> use() {
#ifdef EDDY_REFUSED
    work();
#endif
    co_await work();
}
