// Selecting an operation that is half done when it loses: what it did would be unknown.
// Refused: select_write\.cpp:[0-9]+:[0-9]+: error: no matching
#include <eddy/io/select.hpp>
#include <eddy/io/stream.hpp>
#include <eddy/io/task.hpp>

#include <string_view>

eddy::task<> use(eddy::stream& peer, std::string_view text) {
#ifdef EDDY_REFUSED
    static_cast<void>(co_await eddy::select(peer.read(), peer.write_all(text)));
#endif
    static_cast<void>(co_await eddy::select(peer.read()));
    static_cast<void>(text);
}
