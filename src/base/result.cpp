// The messages of eddy::errc.
#include <eddy/base/result.hpp>

#include <string>

namespace eddy {
namespace {

class category final : public std::error_category {
public:
    const char* name() const noexcept override { return "eddy"; }

    std::string message(int value) const override {
        switch (static_cast<errc>(value)) {
            case errc::cancelled: return "the operation was cancelled";
            case errc::timed_out: return "the deadline passed";
            case errc::end_of_stream: return "the peer finished sending";
            case errc::closed: return "already closed on this side";
            case errc::limit_reached: return "a limit was reached";
            case errc::no_buffers: return "too many receive buffers are lent";
            case errc::malformed: return "the input does not follow its format";
            case errc::bad_address: return "the address cannot be understood";
            case errc::unsupported: return "not available in this build or on this kernel";
            case errc::name_not_found: return "no such host name";
            case errc::resolver_failed: return "the name server did not answer";
            case errc::truncated: return "the connection was cut before its end";
            case errc::not_tls: return "the peer does not speak TLS";
            case errc::handshake_failed: return "the TLS handshake failed";
            case errc::untrusted_certificate:
                return "the peer's certificate is not signed by anybody who is trusted here";
            case errc::certificate_name_mismatch:
                return "the peer's certificate is for another name";
            case errc::certificate_expired:
                return "the peer's certificate has expired or is not valid yet";
            case errc::certificate_refused:
                return "the peer does not accept this side's certificate, or asks for one";
            case errc::no_common_protocol:
                return "the peer and this side have no TLS version, cipher or protocol in common";
            case errc::unusable_certificate:
                return "the certificate, its key, the authorities or the ciphers cannot be used";
        }
        return "unknown error " + std::to_string(value);
    }

    std::error_condition default_error_condition(int value) const noexcept override {
        switch (static_cast<errc>(value)) {
            case errc::cancelled: return std::errc::operation_canceled;
            case errc::timed_out: return std::errc::timed_out;
            case errc::no_buffers: return std::errc::no_buffer_space;
            default: return {value, *this};
        }
    }
};

}  // namespace

const std::error_category& error_category() noexcept {
    static const category instance;
    return instance;
}

}  // namespace eddy
