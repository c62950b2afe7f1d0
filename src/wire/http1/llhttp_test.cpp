// Differential test against llhttp: what Eddy accepts, llhttp accepts with the same events.
#include <eddy/base/random.hpp>

#include "base/test_seed.hpp"
#ifdef EDDY_LLHTTP
#include "wire/http1/llhttp_peer.hpp"
#endif

#include <gtest/gtest.h>

#include <string>
#include <string_view>
#include <vector>

namespace eddy::http1 {
namespace {

#ifdef EDDY_LLHTTP

const std::vector<std::string>& requests() {
    static const std::vector<std::string> all = {
        "GET / HTTP/1.1\r\nHost: h\r\n\r\n",
        "GET /a?b=c%20d HTTP/1.0\r\nX:\r\nY: \t a b \t\r\n\r\n",
        "POST /p HTTP/1.1\r\nhost:h\r\ncontent-length: 5\r\nConnection: keep-alive\r\n\r\nhello",
        "PUT / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\n"
        "4;x=y\r\nbody\r\n00A\r\n0123456789\r\n0\r\nT: u\r\n\r\n",
        "GET /chat HTTP/1.1\r\nHost: h\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n",
        "DELETE http://h:80/x HTTP/1.1\r\nHost: h:80\r\nConnection: close\r\n\r\n",
        "OPTIONS * HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 1\r\n\r\nx",
        "HEAD /" + std::string(200, 'x') +
            " HTTP/1.1\r\nHost: [::1]:8080\r\nCookie: " + std::string(300, 'c') + "\r\n\r\n",
    };
    return all;
}

TEST(http1_llhttp, reports_the_same_requests) {
    std::string pipelined;
    for (const std::string& request : requests()) {
        EXPECT_EQ(difference_to_llhttp(request), "") << request;
        EXPECT_EQ(report_of_eddy(request).requests.size(), 1u) << request;
        pipelined += request;
        EXPECT_EQ(difference_to_llhttp(pipelined), "") << pipelined;
    }
}

TEST(http1_llhttp, accepts_what_eddy_accepts_of_damaged_requests) {
    const std::uint64_t seed = testing::seed_of_this_run();
    SCOPED_TRACE(seed);
    random_generator random(seed);
    using namespace std::string_view_literals;
    constexpr std::string_view spice = "\r\n\0: \t;0aG,/\xff\x7f-#?"sv;
    std::size_t accepted = 0;
    for (int i = 0; i < 20000; ++i) {
        std::string input = requests()[random.below(requests().size())];
        input += requests()[random.below(requests().size())];
        for (std::uint64_t n = random.below(3); n > 0; --n) {
            const std::size_t at = random.below(input.size());
            switch (random.below(3)) {
                case 0: input[at] = spice[random.below(spice.size())]; break;
                case 1: input.insert(at, 1, spice[random.below(spice.size())]); break;
                default: input.erase(at, 1 + random.below(3)); break;
            }
        }
        ASSERT_EQ(difference_to_llhttp(input), "") << input;
        accepted += report_of_eddy(input).requests.size();
    }
    EXPECT_GT(accepted, 10000u) << "the damage leaves something to compare";
}

#else

TEST(http1_llhttp, reports_the_same_requests) {
    GTEST_SKIP() << "llhttp is not installed: run `apt install node-llhttp`";
}

#endif

}  // namespace
}  // namespace eddy::http1
