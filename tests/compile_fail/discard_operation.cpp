// Making an operation and not awaiting it.
// Refused: nodiscard|unused-result|unused-value
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

eddy::task<> use(eddy::stream to) {
#ifdef EDDY_REFUSED
    to.write_all("hello");
#endif
    static_cast<void>(co_await to.write_all("hello"));
}
