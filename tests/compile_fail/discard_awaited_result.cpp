// An ignored result of an operation.
// Refused: nodiscard|unused-result
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

eddy::task<> use(eddy::stream to) {
#ifdef EDDY_REFUSED
    co_await to.write_all("hello");
#endif
    static_cast<void>(co_await to.write_all("hello"));
}
