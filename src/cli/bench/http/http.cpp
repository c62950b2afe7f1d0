// `eddy bench http URL`: requests to an HTTP/1.1 server.
#include "cli/bench/commands.hpp"
#include "cli/bench/http/http_conversation.hpp"
#include "cli/bench/options.hpp"

#include <fmt/format.h>

#include <cstddef>
#include <fstream>
#include <memory>
#include <string>
#include <utility>

namespace eddy::cli::bench {
namespace {

/// Bytes of a request's body at most.
constexpr std::size_t body_limit = std::size_t{64} << 20;

class http_protocol final : public protocol {
public:
    explicit http_protocol(http_work work) : work_(std::move(work)) {}
    std::unique_ptr<conversation> make_first() override {
        return std::make_unique<http_conversation>(work_, reference_);
    }
    std::unique_ptr<conversation> make() const override {
        return std::make_unique<http_conversation>(work_, std::as_const(reference_));
    }

private:
    http_work work_;
    http_reference reference_;
};

/// The value of --data: the text, or what stands in the file behind an @. False after a complaint.
bool read_body(std::string_view value, std::string& into) {
    if (!value.starts_with('@')) {
        into = value;
        return true;
    }
    const std::string path(value.substr(1));
    std::ifstream file(path, std::ios::binary);
    // Some files have no end.
    constexpr std::size_t piece = 64 * 1024;
    while (file && into.size() <= body_limit) {
        const std::size_t before = into.size();
        into.resize(before + piece);
        file.read(into.data() + before, piece);
        into.resize(before + static_cast<std::size_t>(file.gcount()));
    }
    if (!file.is_open() || file.bad()) {
        complain(fmt::format("--data: the file {} cannot be read", path));
        return false;
    }
    if (into.size() <= body_limit) return true;
    complain(fmt::format("--data: {} has more than {} bytes", path, body_limit));
    return false;
}

/// Encodes the pipeline. False after a complaint.
bool read_work(const arguments& given, const target& to, const load_options& wanted,
               http_work& into) {
    http1::header_list headers;
    std::string body;
    if (!read_headers(given, to, headers)) return false;
    if (given.has("data") && !read_body(given.value("data"), body)) return false;
    into.method = given.value("method", given.has("data") ? "POST" : "GET");
    if (into.method == "CONNECT") {
        complain("--method cannot be CONNECT: it ends HTTP on the connection");
        return false;
    }
    if (wanted.closes && !headers.add("Connection", "close")) return false;
    byte_buffer request;
    http1::head_writer writer(request);
    writer.request(into.method, to.path).fields(headers);
    if (!writer.end(given.has("data") ? http1::body_framing::sized(body.size())
                                      : http1::body_framing::none())) {
        complain(fmt::format("--method cannot be \"{}\": it is no token", into.method));
        return false;
    }
    request.append(body);
    into.request_size = request.size();
    if (!can_be_prepared(wanted, into.request_size, "requests")) return false;
    into.requests.reserve(into.request_size * wanted.pipeline);
    for (std::size_t i = 0; i < wanted.pipeline; ++i) into.requests += request.text();

    into.verifies = !given.is_set("no-verify");
    into.expected_text = given.value("expect");
    if (!given.has("expect-status")) return true;
    int status = 0;
    if (!read_number(given, "expect-status", 200, 599, status)) return false;
    into.expected_status = status;
    return true;
}

std::unique_ptr<protocol> make_http(const arguments& given, const target& to,
                                    load_options& wanted) {
    wanted.closes = given.is_set("close");
    if (wanted.closes) {
        if (wanted.pipeline > 1) {
            complain("--close sends one request on each connection, so --pipeline must be 1");
            return nullptr;
        }
        wanted.server.tls.resume = given.is_set("resume") ? "yes" : "no";
    } else if (given.is_set("resume")) {
        complain("--resume is for the new connections of --close");
        return nullptr;
    }
    http_work work;
    if (!read_work(given, to, wanted, work)) return nullptr;
    return std::make_unique<http_protocol>(std::move(work));
}

int run_http(context& with, const arguments& given) {
    return run_bench(with, given, "http", make_http);
}

}  // namespace

command http_command() {
    command c;
    c.name = "bench http";
    c.operands = "URL";
    c.summary = "measure an HTTP/1.1 server, plain or with TLS";
    c.least = c.most = 1;
    c.flags = load_flags();
    c.flags.insert(
        c.flags.begin(),
        {{.name = "method",
          .letter = 'X',
          .value_name = "NAME",
          .help = "of the request",
          .default_value = "GET, or POST with --data"},
         {.name = "data", .value_name = "TEXT|@FILE", .help = "the request's body"},
         {.name = "close", .help = "a new connection with a full handshake for each request"},
         {.name = "resume", .help = "with --close: resume TLS sessions"},
         {.name = "expect-status",
          .value_name = "N",
          .help = "the right status; without it, those below 400 are"},
         {.name = "expect", .value_name = "TEXT", .help = "text that the body must contain"}});
    c.examples = {
        {"eddy bench http http://127.0.0.1:8080/", "50 connections for ten seconds"},
        {"eddy bench http http://127.0.0.1:8080/ -P 16 --server-pid $(pgrep -n nginx)",
         "16 requests under way on each, with the server's CPU"},
        {"eddy bench http http://127.0.0.1:8080/ --rate 20000 --svg latency.svg",
         "latencies at a given load"},
        {"eddy bench http https://127.0.0.1:8443/ --ca ca.pem --close", "new TLS connections"},
        {"eddy bench http http://127.0.0.1:8080/notes --data @note.json -H 'Content-Type: "
         "application/json' --expect-status 201 --no-verify",
         "a request with a body"},
    };
    c.more =
        "Replies are checked before the run: status, length and body must equal those of the "
        "first\n"
        "one. Errors of the run are counted by kind, and the exit status is 2 if there were any. "
        "The\n"
        "report says so when this program was above 90 % of its CPU: it may have been the limit "
        "then.";
    c.run = run_http;
    return c;
}

}  // namespace eddy::cli::bench
