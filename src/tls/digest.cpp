// MD5 by OpenSSL's EVP.
#include "tls/digest.hpp"

#include <openssl/evp.h>

#include <array>

namespace eddy::tls {

std::optional<std::string> md5(std::string_view bytes) {
    std::array<unsigned char, EVP_MAX_MD_SIZE> digest;
    std::size_t size = 0;
    if (EVP_Q_digest(nullptr, "MD5", nullptr, bytes.data(), bytes.size(), digest.data(), &size) !=
        1)
        return std::nullopt;
    return std::string(digest.begin(), digest.begin() + static_cast<std::ptrdiff_t>(size));
}

}  // namespace eddy::tls
