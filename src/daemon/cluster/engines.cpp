// Table of the engines.
#include "daemon/cluster/engines.hpp"

#include "cluster/etcd/etcd_address.hpp"
#include "cluster/etcd/etcd_membership.hpp"
#include "cluster/folder/folder_membership.hpp"

#include <fmt/format.h>

#include <utility>

namespace eddy::daemon {
namespace {

constexpr std::string_view scheme_end = "://";

}  // namespace

bool is_engine_uri(std::string_view text) noexcept {
    return text.find(scheme_end) != std::string_view::npos;
}

outcome<> check_engine(std::string_view text) {
    if (cluster::is_etcd_address(text)) {
        const auto read = cluster::parse_etcd_address(text);
        if (!read) return refuse(400, fmt::format("--cluster: {}", read.error().message));
        return {};
    }
    if (!text.empty() && !is_engine_uri(text)) return {};
    return refuse(400, fmt::format("--cluster cannot be \"{}\": write a folder that all members "
                                   "share, or etcd://HOST:PORT,...",
                                   shown_engine(text)));
}

outcome<std::unique_ptr<cluster::membership>> make_engine(const std::string& text,
                                                          cluster::observer& to) {
    if (auto valid = check_engine(text); !valid) return std::unexpected(std::move(valid.error()));
    if (cluster::is_etcd_address(text)) {
        auto where = cluster::parse_etcd_address(text);
        if (!where) return std::unexpected(std::move(where.error()));
        return std::make_unique<cluster::etcd_membership>(std::move(*where), to);
    }
    return std::make_unique<cluster::folder_membership>(text, to);
}

std::string shown_engine(std::string_view text) {
    const std::size_t begin = text.find(scheme_end);
    if (begin == std::string_view::npos) return std::string(text);
    const std::string_view rest = text.substr(begin + scheme_end.size());
    const std::size_t end = rest.substr(0, rest.find_first_of("/?")).rfind('@');
    if (end == std::string_view::npos) return std::string(text);
    return fmt::format("{}***{}", text.substr(0, begin + scheme_end.size()), rest.substr(end));
}

}  // namespace eddy::daemon
