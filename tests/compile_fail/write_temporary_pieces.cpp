// Writing pieces whose list is a temporary.
// Refused: deleted
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <array>

eddy::task<> write(eddy::stream to, eddy::const_bytes head, eddy::const_bytes body) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await to.write_all(std::array<eddy::const_bytes, 2>{head, body}));
#endif
    const std::array<eddy::const_bytes, 2> pieces{head, body};
    static_cast<void>(co_await to.write_all(pieces));
}
