// Writing the bytes of a temporary to a file: the task would begin after they are gone.
// Refused: deleted
#include <eddy/io/file.hpp>

#include <vector>

std::vector<std::byte> make_bytes();

eddy::task<> write(eddy::file to) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await to.write_at(0, make_bytes()));
#endif
    const std::vector<std::byte> bytes = make_bytes();
    static_cast<void>(co_await to.write_at(0, bytes));
    static_cast<void>(co_await to.write_at(0, eddy::as_bytes("text")));
}
