// Reading into a buffer that dies before the bytes come.
// Refused: no viable conversion|cannot convert|could not convert
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <vector>

eddy::task<> read(eddy::stream from) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await from.read_some(std::vector<std::byte>(100)));
#endif
    std::vector<std::byte> room(100);
    static_cast<void>(co_await from.read_some(room));
    static_cast<void>(co_await from.read_some(eddy::mutable_bytes(room).first(10)));
}
