// The lines at the beginning of <eddy/tls/tls.hpp>, as headers.cpp has those of the others.
#include <eddy/io/loop.hpp>
#include <eddy/net/tcp.hpp>
#include <eddy/tls/tls.hpp>

#include <utility>

using namespace eddy;

inline task<> tls_tls() {
    auto trust = tls::context::client();  // once; copies are cheap
    auto plain = co_await tcp::connect("example.org", 443);
    auto secure = co_await tls::connect(std::move(*plain), *trust, "example.org");
    auto sent = co_await secure->write_all("GET / HTTP/1.0\r\nHost: example.org\r\n\r\n");
    static_cast<void>(sent);
}

int main() { return 0; }
