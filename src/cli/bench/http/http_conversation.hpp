// HTTP/1.1 side of a load: requests that were encoded beforehand, and a scan of the responses that
// compares each with the first one. Most responses repeat byte for byte but for Date, and are
// compared so; the others go through wire/http1's parser.
#pragma once

#include <eddy/wire/http1.hpp>

#include "cli/bench/load.hpp"
#include "cli/bench/repeated_reply.hpp"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace eddy::cli::bench {

/// Requests to send, and the response that is expected.
struct http_work {
    std::string method = "GET";
    std::string requests;          ///< the pipeline, encoded
    std::size_t request_size = 0;  ///< bytes of one
    bool verifies = true;          ///< responses are compared with the first one
    std::optional<int> expected_status;
    std::string expected_text;  ///< somewhere in the first MiB of the body
};

/// The first response: the reference for all others.
struct http_reference {
    int status = 0;            ///< 0: there was none yet
    std::uint64_t size = 0;    ///< bytes of the body
    std::uint64_t digest = 0;  ///< of the body (FNV-1a)
    std::string body;          ///< its beginning, for the comparison while time is taken
    repeated_reply reply;      ///< the last response of the first pass
};

/// One connection. One thread.
class http_conversation final : public conversation {
public:
    /// Bytes of the first body in which the expected text may be.
    static constexpr std::size_t searched_limit = 1024 * 1024;

    /// Connection of the first pass, which writes the reference. Both must outlive it.
    http_conversation(const http_work& work, http_reference& learned)
        : work_(work), reference_(learned), learned_(&learned) {}
    /// Connection after the first pass.
    http_conversation(const http_work& work, const http_reference& reference)
        : work_(work), reference_(reference) {}

    std::string_view open() override;
    bool is_open() const noexcept override { return true; }
    std::string_view requests(std::size_t count) override {
        return std::string_view(work_.requests).substr(0, count * work_.request_size);
    }
    scan_result scan(std::string_view received, std::size_t awaited, tally& into) override;
    scan_result finish(tally& into) override;

private:
    // Begins to parse a response whose first bytes, up to at_, were compared.
    void begin_parsing();
    // Parses; false at a fault. Stops at the end of a response.
    bool parse(std::string_view& input, scan_result& made, tally& into);
    void take_body(std::string_view piece);
    void end_response(tally& into);
    // Counts what is wrong with `times` responses like the one at hand.
    bool has_status_fault(int status, std::uint64_t times, tally& into) const;
    void learn();
    bool is_learning() const noexcept { return learned_ != nullptr; }

    const http_work& work_;
    const http_reference& reference_;
    http_reference* learned_ = nullptr;
    http1::response_parser parser_{http1::limits{.body = UINT64_MAX}};
    std::uint64_t at_ = 0;  // within the repeated reply
    bool is_parsing_ = false;
    bool is_same_ = true;  // the body so far as the reference's
    std::uint64_t size_ = 0;
    std::uint64_t digest_ = 0;
    std::string raw_;   // of the response at hand, in the first pass, to compared_limit
    std::string body_;  // the same of its body, to searched_limit
    std::uint64_t raw_size_ = 0;
};

}  // namespace eddy::cli::bench
