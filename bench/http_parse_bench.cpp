// Cost of parsing HTTP/1.1 requests, beside llhttp where the machine has it. `bytes_per_second` is
// the figure to quote; Eddy's includes the copy of the head that the parser keeps, llhttp's the
// views of the fields that its caller keeps.
#include <eddy/base/byte_buffer.hpp>
#include <eddy/wire/http1.hpp>

#include <benchmark/benchmark.h>
#ifdef EDDY_LLHTTP
#include <llhttp.h>
#endif

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace {

using namespace eddy;

// A navigation of a desktop browser to a page of a shop: 700 bytes, 12 fields.
constexpr std::string_view browser_request =
    "GET /catalogue/lighting/table-lamps?sort=price&page=2 HTTP/1.1\r\n"
    "Host: www.shop.example\r\n"
    "Connection: keep-alive\r\n"
    "Cache-Control: max-age=0\r\n"
    "Upgrade-Insecure-Requests: 1\r\n"
    "User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) "
    "Chrome/142.0.0.0 Safari/537.36\r\n"
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,image/webp,"
    "*/*;q=0.8\r\n"
    "Sec-Fetch-Site: same-origin\r\n"
    "Sec-Fetch-Mode: navigate\r\n"
    "Referer: https://www.shop.example/catalogue/lighting\r\n"
    "Accept-Encoding: gzip, deflate, br, zstd\r\n"
    "Accept-Language: en-GB,en;q=0.9,de;q=0.8\r\n"
    "Cookie: session=8f14e45fceea167a5a36dedd4bea2543; theme=dark; basket=3; "
    "seen=1756339200\r\n"
    "\r\n";

constexpr std::string_view small_request = "GET /echo?hello=world HTTP/1.1\r\nHost: x\r\n\r\n";

std::string pipeline_of(std::string_view request, std::size_t count) {
    std::string out;
    for (std::size_t i = 0; i < count; ++i) out += request;
    return out;
}

void report(benchmark::State& state, std::size_t requests, std::size_t bytes) {
    state.SetItemsProcessed(state.iterations() * static_cast<std::int64_t>(requests));
    state.SetBytesProcessed(state.iterations() * static_cast<std::int64_t>(bytes));
}

// Number of requests in `input`; as a session does, one event after the other.
std::size_t parse_all(http1::request_parser& parser, std::string_view input) {
    std::size_t requests = 0;
    for (;;) {
        const http1::step step = parser.parse(input);
        input.remove_prefix(step.consumed);
        switch (step.what) {
            case http1::event::head: benchmark::DoNotOptimize(parser.head()); break;
            case http1::event::end: ++requests; break;
            case http1::event::body: break;
            case http1::event::need_more:
            case http1::event::error: return requests;
        }
    }
}

void eddy_parse(benchmark::State& state, std::string_view request, std::size_t count) {
    const std::string input = pipeline_of(request, count);
    http1::request_parser parser;
    for (auto _ : state) {
        if (parse_all(parser, input) != count) state.SkipWithError("wrong number of requests");
    }
    report(state, count, input.size());
}

// The head arrives in two reads.
void eddy_parse_in_halves(benchmark::State& state, std::string_view request) {
    http1::request_parser parser;
    for (auto _ : state) {
        parse_all(parser, request.substr(0, request.size() / 2));
        if (parse_all(parser, request.substr(request.size() / 2)) != 1)
            state.SkipWithError("wrong number of requests");
    }
    report(state, 1, request.size());
}

BENCHMARK_CAPTURE(eddy_parse, browser, browser_request, 1);
BENCHMARK_CAPTURE(eddy_parse, browser_16_pipelined, browser_request, 16);
BENCHMARK_CAPTURE(eddy_parse, small, small_request, 1);
BENCHMARK_CAPTURE(eddy_parse, small_16_pipelined, small_request, 16);
BENCHMARK_CAPTURE(eddy_parse_in_halves, browser, browser_request);

#ifdef EDDY_LLHTTP

struct kept_head {
    std::string_view target;
    std::string_view names[64];
    std::string_view values[64];
    std::size_t fields = 0;
    std::size_t requests = 0;
};

kept_head& head_of(llhttp_t* parser) { return *static_cast<kept_head*>(parser->data); }

void llhttp_parse(benchmark::State& state, std::string_view request, std::size_t count) {
    const std::string input = pipeline_of(request, count);
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    settings.on_url = [](llhttp_t* p, const char* at, std::size_t size) {
        head_of(p).target = {at, size};
        return 0;
    };
    settings.on_header_field = [](llhttp_t* p, const char* at, std::size_t size) {
        head_of(p).names[head_of(p).fields] = {at, size};
        return 0;
    };
    settings.on_header_value = [](llhttp_t* p, const char* at, std::size_t size) {
        head_of(p).values[head_of(p).fields++] = {at, size};
        return 0;
    };
    settings.on_message_complete = [](llhttp_t* p) {
        benchmark::DoNotOptimize(head_of(p));
        ++head_of(p).requests;
        head_of(p).fields = 0;
        return 0;
    };
    kept_head kept;
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    parser.data = &kept;
    for (auto _ : state) {
        kept.requests = 0;
        llhttp_execute(&parser, input.data(), input.size());
        if (kept.requests != count) state.SkipWithError("wrong number of requests");
    }
    report(state, count, input.size());
}

// Without callbacks, so without any result but the end.
void llhttp_scan(benchmark::State& state, std::string_view request) {
    llhttp_settings_t settings;
    llhttp_settings_init(&settings);
    llhttp_t parser;
    llhttp_init(&parser, HTTP_REQUEST, &settings);
    for (auto _ : state) {
        if (llhttp_execute(&parser, request.data(), request.size()) != HPE_OK)
            state.SkipWithError("the request is refused");
    }
    report(state, 1, request.size());
}

BENCHMARK_CAPTURE(llhttp_parse, browser, browser_request, 1);
BENCHMARK_CAPTURE(llhttp_parse, browser_16_pipelined, browser_request, 16);
BENCHMARK_CAPTURE(llhttp_parse, small, small_request, 1);
BENCHMARK_CAPTURE(llhttp_parse, small_16_pipelined, small_request, 16);
BENCHMARK_CAPTURE(llhttp_scan, browser, browser_request);

#endif

}  // namespace

BENCHMARK_MAIN();
