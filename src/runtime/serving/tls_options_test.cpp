// Tests of the TLS options: what they make of an address, and what they refuse.
#include "runtime/serving/tls_options.hpp"

#include "base/files/temporary_folder.hpp"
#include "runtime/testing.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace eddy::runtime {
namespace {

using namespace runtime::testing;
using ::testing::HasSubstr;

outcome<std::string> address_by(const json& options, std::string uri = "tcp://127.0.0.1:7") {
    const std::vector<option> table = tls_options();
    const settings chosen = must_do(settings::parse(table, options));
    auto read = read_tls(chosen);
    if (!read) return std::unexpected(read.error());
    transport::address where = *transport::parse(uri);
    if (!*read) return where.to_string();
    if (auto added = add_tls(where, std::move(**read)); !added)
        return std::unexpected(added.error());
    return where.to_string();
}

std::string fault_of(const json& options, std::string uri = "tcp://127.0.0.1:7") {
    const auto made = address_by(options, std::move(uri));
    return made ? "none: " + *made : made.error().message;
}

TEST(tls_options, make_a_tls_address) {
    EXPECT_EQ(must_do(address_by(json::object())), "tcp://127.0.0.1:7");
    EXPECT_EQ(must_do(address_by({{"tls", true}, {"cert", "/c"}})),
              "tls://127.0.0.1:7?cert=/c&clients=no");
    EXPECT_EQ(must_do(address_by({{"tls", true}, {"cert", "/c"}, {"key", "/k"}, {"ca", "/a"}})),
              "tls://127.0.0.1:7?cert=/c&key=/k&ca=/a&clients=yes");
    for (const auto& [asked, made] :
         {std::pair("no", "no"), std::pair("optional", "optional"), std::pair("required", "yes")})
        EXPECT_EQ(must_do(address_by(
                      {{"tls", true}, {"cert", "/c"}, {"ca", "/a"}, {"client_auth", asked}})),
                  std::string("tls://127.0.0.1:7?cert=/c&ca=/a&clients=") + made);
}

TEST(tls_options, that_contradict_each_other_are_refused) {
    for (const std::string name : {"cert", "key", "ca"})
        EXPECT_EQ(fault_of({{name, "/f"}}), "--" + name + " has no effect without --tls");
    EXPECT_EQ(fault_of({{"client_auth", "no"}}), "--client-auth has no effect without --tls");
    EXPECT_EQ(fault_of({{"tls", true}}), "--tls needs a certificate: add --cert FILE");
    EXPECT_THAT(fault_of({{"tls", true}, {"cert", "c.pem"}}),
                HasSubstr("\"c.pem\" has a relative path: write the whole path"));
    EXPECT_THAT(fault_of({{"tls", true}, {"cert", "/c"}, {"client_auth", "required"}}),
                HasSubstr("--client-auth required needs the authority of clients' certificates"));
    const json good = {{"tls", true}, {"cert", "/c"}};
    EXPECT_THAT(fault_of(good, "udp://127.0.0.1:7"), HasSubstr("--tls has no effect with UDP"));
    EXPECT_THAT(fault_of(good, "unix:///s"), HasSubstr("--tls is served on a port"));
    EXPECT_THAT(fault_of(good, "tls://127.0.0.1:7?cert=/d"), HasSubstr("mean the same"));
}

TEST(tls_options, of_a_file_that_cannot_be_read_are_named_with_it) {
    const temporary_folder folder;
    transport::tls_parameters wanted;
    wanted.cert = folder.file("none.pem");
    EXPECT_EQ(check_tls_readable(wanted).error().message,
              "--cert " + wanted.cert + " cannot be read: No such file or directory");
    EXPECT_THAT(check_tls_readable(wanted, {.cert = "--tls-cert-file"}).error().message,
                HasSubstr("--tls-cert-file /"));
}

}  // namespace
}  // namespace eddy::runtime
