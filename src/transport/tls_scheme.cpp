// Scheme tls://: TLS with the files that the address names, over TCP.
#include <eddy/net/tcp.hpp>
#include <eddy/tls/tls.hpp>

#include "tls/digest.hpp"
#include "transport/digest.hpp"
#include "transport/schemes.hpp"
#include "transport/secure.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <expected>
#include <filesystem>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace eddy::transport {
namespace {

using made_context = std::expected<tls::context, std::string>;

tls::certificate own_certificate(const tls_parameters& given) {
    return {given.cert, given.key.empty() ? given.cert : given.key};
}

/// The certificates of a folder, in the order of their names.
std::expected<std::vector<tls::certificate>, std::string> folder_certificates(
    const std::string& folder) {
    namespace fs = std::filesystem;
    std::vector<std::string> chains;
    std::error_code error;
    auto at = fs::directory_iterator(folder, error);
    for (; !error && at != fs::directory_iterator(); at.increment(error)) {
        if (at->path().extension() != ".pem") continue;
        if (chains.size() == max_folder_certificates)
            return std::unexpected("the folder " + folder + " has more than " +
                                   std::to_string(max_folder_certificates) + " certificates");
        chains.push_back(at->path());
    }
    if (error)
        return std::unexpected("the folder " + folder + " cannot be read: " + error.message());
    if (chains.empty())
        return std::unexpected("the folder " + folder + " has no certificate: add NAME.pem");
    std::ranges::sort(chains);
    std::vector<tls::certificate> made;
    for (std::string& chain : chains) {
        std::string key = fs::path(chain).replace_extension(".key");
        if (!fs::exists(key, error)) key = chain;
        made.push_back({std::move(chain), std::move(key)});
    }
    return made;
}

/// The certificates that a listener serves.
std::expected<std::vector<tls::certificate>, std::string> server_certificates(
    const tls_parameters& given) {
    if (given.cert.empty()) return {};
    std::error_code ignored;
    if (!std::filesystem::is_directory(given.cert, ignored))
        return std::vector{own_certificate(given)};
    if (!given.key.empty())
        return std::unexpected(given.cert +
                               ": Is a directory. The certificates of a folder have their keys "
                               "there: name a file, or leave out " +
                               given.key);
    return folder_certificates(given.cert);
}

/// Common part of a server's and a client's options.
void set_versions_and_ciphers(const tls_parameters& given, auto& options) {
    if (given.min == "1.3") options.min = tls::version::tls1_3;
    if (given.max == "1.2") options.max = tls::version::tls1_2;
    options.ciphers = {.tls1_2 = given.ciphers, .tls1_3 = given.ciphersuites};
    for (std::string_view left = given.alpn; !left.empty();) {
        const std::size_t end = std::min(left.find(','), left.size());
        options.alpn.emplace_back(left.substr(0, end));
        left.remove_prefix(std::min(end + 1, left.size()));
    }
}

made_context server_context(const tls_parameters& given) {
    tls::server_options options;
    set_versions_and_ciphers(given, options);
    options.prefer_own_ciphers = given.prefer != "client";
    auto certificates = server_certificates(given);
    if (!certificates) return std::unexpected(certificates.error());
    options.certificates = std::move(*certificates);
    if (!given.ca.empty() && given.clients != "no") {
        options.clients = given.clients == "optional" ? tls::client_verification::optional
                                                      : tls::client_verification::required;
        options.client_ca = given.ca;
    } else if (given.clients == "yes" || given.clients == "optional") {
        return std::unexpected("the authority of clients' certificates is missing: add ca=FILE");
    }
    return tls::context::server(options);
}

made_context read_client_context(const tls_parameters& given) {
    tls::client_options options;
    set_versions_and_ciphers(given, options);
    options.verify = given.verify != "none";
    options.verify_name = given.verify != "chain";
    options.resume = given.resume != "no";
    options.ca = given.ca;
    if (!given.cert.empty()) options.own = own_certificate(given);
    return tls::context::client(options);
}

/// Attributes that change when a file is written to or replaced by another.
struct file_stamp {
    dev_t device = 0;
    ino_t number = 0;
    off_t size = -1;  // -1: stat(2) failed
    std::array<std::int64_t, 4> times = {};

    static file_stamp of(const std::string& path) noexcept {
        struct stat info{};
        if (path.empty() || ::stat(path.c_str(), &info) != 0) return {};
        return {
            info.st_dev,
            info.st_ino,
            info.st_size,
            {info.st_mtim.tv_sec, info.st_mtim.tv_nsec, info.st_ctim.tv_sec, info.st_ctim.tv_nsec}};
    }
    friend bool operator==(const file_stamp&, const file_stamp&) = default;
};

/// Contexts that clients made of files, the most recently used one first. Any thread.
class kept_contexts {
public:
    made_context get(const tls_parameters& files) {
        // Before the files are read: a later change is detected the next time.
        const stamps now = {file_stamp::of(files.cert), file_stamp::of(files.key),
                            file_stamp::of(files.ca)};
        if (auto found = find(files, now)) return *found;
        made_context made = read_client_context(files);
        if (made) keep({files, now, *made});
        return made;
    }

private:
    using stamps = std::array<file_stamp, 3>;
    struct entry {
        tls_parameters files;
        stamps read_at;
        tls::context context;
    };

    std::optional<tls::context> find(const tls_parameters& files, const stamps& now) {
        const std::lock_guard lock(mutex_);
        const auto found = std::ranges::find(entries_, files, &entry::files);
        if (found == entries_.end() || found->read_at != now) return std::nullopt;
        std::rotate(entries_.begin(), found, found + 1);
        return entries_.front().context;
    }

    void keep(entry made) {
        const std::lock_guard lock(mutex_);
        std::erase_if(entries_, [&](const entry& old) { return old.files == made.files; });
        if (entries_.size() == max_kept_tls_contexts) entries_.pop_back();
        entries_.insert(entries_.begin(), std::move(made));
    }

    std::mutex mutex_;
    std::vector<entry> entries_;
};

/// Name that a server is asked for, and that its certificate must be for.
const std::string& server_name(const address& of) noexcept {
    return of.tls.name.empty() ? of.host : of.tls.name;
}

made_context client_context(const tls_parameters& files) {
    if (!files.name.empty()) {
        // Names share what is read.
        tls_parameters unnamed = files;
        unnamed.name.clear();
        return client_context(unnamed);
    }
    if (files == tls_parameters()) {
        // The system's list is long and costs some milliseconds to read.
        static const made_context usual = tls::context::client();
        return usual;
    }
    // Never destroyed: OpenSSL may end earlier at the program's exit.
    static kept_contexts& kept = *new kept_contexts;
    return kept.get(files);
}

result<listener> listen_tls(const address& where, const listen_options& options) {
    auto context = server_context(where.tls);
    if (!context) return fail(errc::unusable_certificate);
    auto plain = tcp::listen(where.host, where.port, options);
    if (!plain) return plain;
    return tls::listen(std::move(*plain), std::move(*context));
}

/// A server's context that can be replaced. Any thread.
class replaceable_context {
public:
    explicit replaceable_context(tls::context first) : now_(std::move(first)) {}
    tls::context get() const {
        const std::lock_guard lock(mutex_);
        return now_;
    }
    void set(tls::context next) {
        const std::lock_guard lock(mutex_);
        std::swap(now_, next);
    }

private:
    mutable std::mutex mutex_;
    tls::context now_;
};

result<listener_parts> make_tls_parts(const address& where) {
    auto context = server_context(where.tls);
    if (!context) return fail(errc::unusable_certificate);
    auto shared = std::make_shared<replaceable_context>(std::move(*context));
    return listener_parts{listener(),
                          [shared](stream accepted, duration timeout) {
                              return tls::accept(std::move(accepted), shared->get(), timeout);
                          },
                          [shared](const address& files) -> result<> {
                              auto next = server_context(files.tls);
                              if (!next) return fail(errc::unusable_certificate);
                              shared->set(std::move(*next));
                              return {};
                          }};
}

result<listener> listen_below_tls(const address& where, const listen_options& options) {
    return tcp::listen(where.host, where.port, options);
}

task<result<stream>> connect_tls(address where, tcp::connect_options options) {
    if (where.port == 0 || where.host.empty()) co_return fail(errc::bad_address);
    const auto context = client_context(where.tls);
    if (!context) co_return fail(errc::unusable_certificate);
    auto plain = co_await tcp::connect(where.host, where.port, options);
    if (!plain) co_return plain;
    co_return co_await tls::connect(std::move(*plain), *context, server_name(where));
}

}  // namespace

constinit const scheme_entry tls_entry = {
    "tls",          scheme::tls,      false,
    listen_tls,     connect_tls,      nullptr,
    make_tls_parts, listen_below_tls, "tls:// carries streams, not datagrams; use udp://"};

result<> renew_tls(listener& of, const address& where) {
    auto context = server_context(where.tls);
    if (!context) return fail(errc::unusable_certificate);
    if (!tls::renew(of, std::move(*context))) return fail(errc::unsupported);
    return {};
}

task<result<stream>> secure(stream below, address where, duration timeout) {
    if (where.kind != scheme::tls) co_return fail(errc::unsupported);
    const auto context = client_context(where.tls);
    if (!context) co_return fail(errc::unusable_certificate);
    co_return co_await tls::connect(std::move(below), *context, server_name(where), timeout);
}

std::optional<std::string> md5(std::string_view bytes) { return tls::md5(bytes); }

bool is_secure(const stream& of) noexcept { return tls::is_tls(of); }

std::string verified_subject(const stream& of) {
    const std::optional<tls::connection_info> agreed = tls::info(of);
    return agreed && agreed->peer_verified ? agreed->peer_subject : std::string();
}

std::string explain_certificates(const address& where) {
    // Parameters without a certificate may be a client's: a fault of that context comes first.
    if (where.tls.cert.empty() && where.tls != tls_parameters()) {
        const made_context context = client_context(where.tls);
        if (!context) return context.error();
    }
    const made_context context = server_context(where.tls);
    return context ? std::string() : context.error();
}

}  // namespace eddy::transport
