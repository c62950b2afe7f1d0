// An ignored result of a task.
// Refused: nodiscard|unused-result
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

eddy::task<eddy::result<>> greet(eddy::stream& to) { co_return co_await to.write_all("hello"); }

eddy::task<> use(eddy::stream to) {
#ifdef EDDY_REFUSED
    co_await greet(to);
#endif
    static_cast<void>(co_await greet(to));
}
