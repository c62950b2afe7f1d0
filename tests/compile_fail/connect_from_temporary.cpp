// Connecting from an address whose binding is a temporary.
// Refused: deleted
#include <eddy/io/loop.hpp>
#include <eddy/io/task.hpp>

eddy::task<> connect(eddy::endpoint peer, eddy::endpoint own) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await eddy::loop::current().connect(peer, {.address = own}));
#endif
    const eddy::local_binding from{.address = own};
    static_cast<void>(co_await eddy::loop::current().connect(peer, from));
}
