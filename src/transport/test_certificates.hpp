// Files with certificates for tests of the layers above that go over tls://.
#pragma once

#include "tls/testing.hpp"

#include <fstream>
#include <string>

namespace eddy::transport {

/// Writes both.pem, the certificate and key of localhost, and ca.pem, the authority that signed it.
inline void write_test_certificates(const testing::temporary_folder& into) {
    const auto write = [&](const std::string& name, const std::string& text) {
        std::ofstream(into.file(name)) << text;
    };
    const tls::certificate& own = tls::localhost_certificate();
    write("both.pem", own.chain + own.key);
    write("ca.pem", tls::test_authority().pem());
}

}  // namespace eddy::transport
