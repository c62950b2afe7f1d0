// Writing the bytes, or the pieces, of a temporary.
// Refused: deleted
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <span>
#include <vector>

std::vector<std::byte> make_bytes();

eddy::task<> write(eddy::stream to) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await to.write_all(make_bytes()));
#endif
    const std::vector<std::byte> bytes = make_bytes();
    static_cast<void>(co_await to.write_all(bytes));
    static_cast<void>(co_await to.write_all(eddy::const_bytes(bytes).first(1)));
    const std::vector<eddy::const_bytes> pieces{bytes, bytes};
    static_cast<void>(co_await to.write_all(pieces));
    // It sends now what goes, and keeps nothing.
    static_cast<void>(to.try_write(make_bytes()));
}
