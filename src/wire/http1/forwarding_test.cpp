// Hop-by-hop fields: the fixed set, fields that Connection names, and odd values of Connection.
#include "wire/http1/forwarding.hpp"

#include <eddy/wire/http1.hpp>

#include <gtest/gtest.h>

#include <initializer_list>
#include <string>
#include <string_view>

namespace eddy::http1 {
namespace {

header_list list_of(std::initializer_list<header> fields) {
    header_list made;
    for (const header each : fields) EXPECT_TRUE(made.add(each.name, each.value)) << each.name;
    return made;
}

std::string render(const header_list& list) {
    std::string out;
    for (const header h : list) out.append(h.name).append("=").append(h.value).append(";");
    return out;
}

/// The forwarded fields, by the selection and by the removal, which must agree.
std::string forwarded(const header_list& from) {
    header_list selected;
    const end_to_end_fields kept(from);
    for (const header each : from)
        if (const auto as = kept.forwarded(each)) EXPECT_TRUE(selected.add(as->name, as->value));
    header_list reduced = from;
    remove_hop_by_hop(reduced);
    EXPECT_EQ(render(reduced), render(selected));
    // It is a list as any other.
    EXPECT_TRUE(reduced.add("X-More", "m"));
    EXPECT_EQ(reduced.find("x-more"), "m");
    EXPECT_EQ(reduced.size(), selected.size() + 1);
    return render(selected);
}

std::string forwarded(std::initializer_list<header> fields) { return forwarded(list_of(fields)); }

TEST(http_forwarding, leaves_out_the_fields_of_one_connection_in_any_case) {
    EXPECT_EQ(forwarded({{"Host", "a"},
                         {"Connection", "keep-alive"},
                         {"keep-alive", "timeout=5"},
                         {"Proxy-Connection", "close"},
                         {"TRAILER", "Digest"},
                         {"Transfer-Encoding", "chunked"},
                         {"Upgrade", "websocket"},
                         {"Proxy-Authorization", "Basic eA=="},
                         {"Proxy-Authenticate", "Basic"},
                         {"Proxy-Authentication-Info", "x=y"},
                         {"Accept", "*/*"}}),
              "Host=a;Accept=*/*;");
    EXPECT_EQ(forwarded({}), "");
    EXPECT_EQ(forwarded({{"Connection", "close"}}), "");
    EXPECT_EQ(forwarded({{"Accept", "*/*"}, {"Content-Length", "3"}}),
              "Accept=*/*;Content-Length=3;");
}

TEST(http_forwarding, fields_of_a_similar_name_pass) {
    EXPECT_EQ(forwarded({{"Keep-Alives", "1"},
                         {"Trailers", "2"},
                         {"T", "3"},
                         {"Connections", "4"},
                         {"Proxy-Authorisation", "5"},
                         {"Upgrade-Insecure-Requests", "1"}}),
              "Keep-Alives=1;Trailers=2;T=3;Connections=4;Proxy-Authorisation=5;"
              "Upgrade-Insecure-Requests=1;");
}

TEST(http_forwarding, leaves_out_what_connection_names) {
    EXPECT_EQ(forwarded({{"X-Mine", "1"},
                         {"Connection", "close, x-mine ,,\t X-OTHER"},
                         {"x-other", "2"},
                         {"X-Third", "3"},
                         {"X-Mine", "4"}}),
              "X-Third=3;");
}

TEST(http_forwarding, each_connection_line_counts) {
    EXPECT_EQ(forwarded({{"Connection", "X-A"},
                         {"X-A", "1"},
                         {"X-B", "2"},
                         {"X-C", "3"},
                         {"connection", "keep-alive"},
                         {"CONNECTION", "x-b"}}),
              "X-C=3;");
}

TEST(http_forwarding, items_that_are_no_tokens_name_nothing) {
    EXPECT_EQ(forwarded({{"Connection", "\"X-A\", 'X-B', X-C;q=1, X D, ,"},
                         {"X-A", "1"},
                         {"X-B", "2"},
                         {"X-C", "3"},
                         {"X", "4"},
                         {"D", "5"}}),
              "X-A=1;X-B=2;X-C=3;X=4;D=5;");
    // A comma within quotes ends the item all the same: there are no quotes in a list of tokens.
    EXPECT_EQ(forwarded({{"Connection", "\"X-A, X-B, X-C\""}, {"X-A", "1"}, {"X-B", "2"}}),
              "X-A=1;");
    EXPECT_EQ(forwarded({{"Connection", ""}, {"X-A", "1"}}), "X-A=1;");
}

TEST(http_forwarding, connection_cannot_name_what_is_for_all_recipients) {
    const std::string_view all =
        "host, content-length, Content-Type, content-encoding, content-range, cache-control, date";
    EXPECT_EQ(forwarded({{"Connection", all},
                         {"Host", "a"},
                         {"Content-Length", "3"},
                         {"Content-Type", "text/plain"},
                         {"Content-Encoding", "gzip"},
                         {"Content-Range", "bytes 0-2/9"},
                         {"Cache-Control", "no-store"},
                         {"Date", "now"}}),
              "Host=a;Content-Length=3;Content-Type=text/plain;Content-Encoding=gzip;"
              "Content-Range=bytes 0-2/9;Cache-Control=no-store;Date=now;");
    // Others can be named, such as those of the client's identity: what the intermediary adds, it
    // adds afterwards.
    EXPECT_EQ(forwarded({{"Connection", "Cookie, X-Forwarded-For"},
                         {"Cookie", "a=b"},
                         {"X-Forwarded-For", "::1"}}),
              "");
}

TEST(http_forwarding, of_te_only_trailers_passes) {
    EXPECT_EQ(forwarded({{"TE", "trailers"}, {"Connection", "TE"}}), "TE=trailers;");
    EXPECT_EQ(forwarded({{"te", "deflate;q=0.5, Trailers , gzip"}, {"X", "1"}}),
              "te=Trailers;X=1;");
    EXPECT_EQ(forwarded({{"TE", "gzip"}, {"TE", "x-trailers, trailers;q=1"}, {"TE", ""}}), "");
}

TEST(http_forwarding, a_parsed_head_is_reduced_in_place) {
    request_parser parser;
    const std::string_view text =
        "GET / HTTP/1.1\r\nHost: a\r\nTE: gzip, trailers\r\nX-A: 1\r\nConnection: x-a, te\r\n"
        "Accept: text/html\r\nUpgrade: h2c\r\nX-Last: 2\r\n\r\n";
    ASSERT_EQ(parser.parse(text).what, event::head);
    EXPECT_EQ(forwarded(parser.head().headers), "Host=a;TE=trailers;Accept=text/html;X-Last=2;");
    remove_hop_by_hop(parser.head().headers);
    EXPECT_EQ(render(parser.head().headers), "Host=a;TE=trailers;Accept=text/html;X-Last=2;");
}

}  // namespace
}  // namespace eddy::http1
