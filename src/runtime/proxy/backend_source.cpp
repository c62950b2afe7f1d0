// Reading and resolving of backends.
#include "runtime/proxy/backend_source.hpp"

#include <eddy/base/assert.hpp>

#include "base/text/text.hpp"
#include "net/host_names.hpp"
#include "runtime/target.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

using eddy::proxy::max_backends;
using eddy::proxy::max_weight;
using eddy::proxy::wanted_backend;
using transport::scheme;

/// Names have no ':' and no '/', which every address has.
bool is_name(std::string_view text) noexcept {
    return text.find_first_of(":/") == std::string_view::npos;
}

/// Address for datagrams.
outcome<transport::address> read_datagram_target(std::string_view text, std::string_view flag) {
    std::string uri(text);
    if (!text.contains("://")) {
        if (text.starts_with(':')) uri.insert(0, this_machine);
        uri.insert(0, "udp://");
    }
    auto read = transport::parse(uri);
    if (!read || read->kind != scheme::udp || read->host.empty() || read->port == 0)
        return refuse(400, fmt::format("{} cannot be \"{}\": a proxy that listens on udp:// passes "
                                       "datagrams on; write HOST:PORT or udp://HOST:PORT",
                                       flag, text));
    return std::move(*read);
}

/// Beginning of the name of a service.
constexpr std::string_view service_prefix = "srv://";

outcome<backend_source> read_service(std::string_view text, std::string_view flag) {
    backend_source made;
    made.name = text;
    made.service = text.substr(service_prefix.size());
    if (!is_host_name(made.service))
        return refuse(400,
                      fmt::format("{} cannot be \"{}\": write the name of SRV records, such as "
                                  "srv://_http._tcp.example.org; weights and ports are those "
                                  "of the records",
                                  flag, text));
    return made;
}

outcome<backend_source> read_source(std::string_view text, std::string_view flag, scheme carrier) {
    if (is_word(text.substr(0, service_prefix.size()), service_prefix))
        return read_service(text, flag);
    backend_source made;
    if (const std::size_t star = text.rfind('*');
        star != std::string_view::npos && star > 0 && star + 1 < text.size() &&
        text.find_first_not_of("0123456789", star + 1) == std::string_view::npos) {
        const std::string_view digits = text.substr(star + 1);
        const auto read =
            std::from_chars(digits.data(), digits.data() + digits.size(), made.weight);
        if (read.ec != std::errc() || made.weight < 1 || made.weight > max_weight)
            return refuse(400, fmt::format("{} {}: a weight is 1 to {}", flag, text, max_weight));
        text = text.substr(0, star);
    }
    made.name = text;
    if (!text.empty() && text != "*" && endpoint::ip(std::string(text), 0))
        return refuse(400, fmt::format("{} {}: which port? Write {}:PORT", flag, text,
                                       text.find(':') == std::string_view::npos
                                           ? std::string(text)
                                           : "[" + std::string(text) + "]"));
    if (text.starts_with("http://") || text.starts_with("https://"))
        return refuse(400, fmt::format("{} {}: write {}HOST:PORT, and --protocol http", flag, text,
                                       text.starts_with("https") ? "tls://" : ""));
    if (!text.empty() && is_name(text)) return made;
    auto where =
        carrier == scheme::udp ? read_datagram_target(text, flag) : read_target(text, flag);
    if (!where) return std::unexpected(std::move(where.error()));
    made.name = where->to_string();
    made.where = std::move(*where);
    return made;
}

bool is_carried(const transport::address& of, scheme carrier) noexcept {
    if (carrier == scheme::udp) return of.kind == scheme::udp;
    return of.kind != scheme::udp && of.kind != scheme::handoff;
}

/// Order in which the addresses of one runtime are preferred.
int rank(const transport::address& of, scheme carrier) noexcept {
    if (of.kind == carrier) return -1;
    switch (of.kind) {
        case scheme::tcp: return 0;
        case scheme::unix_socket: return 1;
        case scheme::shm: return 2;
        case scheme::tls: return 3;
        case scheme::udp:
        case scheme::handoff: break;
    }
    return 4;
}

}  // namespace

outcome<std::vector<backend_source>> read_sources(std::string_view text, std::string_view flag,
                                                  scheme carrier) {
    std::vector<backend_source> all;
    if (text.empty()) return all;
    for (bool is_last = false; !is_last;) {
        const std::size_t end = std::min(text.find(','), text.size());
        auto one = read_source(text.substr(0, end), flag, carrier);
        if (!one) return std::unexpected(std::move(one.error()));
        if (std::ranges::find(all, one->name, &backend_source::name) != all.end())
            return refuse(400, fmt::format("{} names {} twice", flag, one->name));
        all.push_back(std::move(*one));
        if (all.size() > max_backends)
            return refuse(400, fmt::format("{} takes at most {} addresses", flag, max_backends));
        is_last = end == text.size();
        text.remove_prefix(std::min(end + 1, text.size()));
    }
    return all;
}

outcome<> name_masters(std::vector<backend_source>& sources, std::string_view flag) {
    constexpr std::string_view end = "-master";
    for (backend_source& each : sources) {
        if (!each.is_runtime() || !each.name.starts_with('@') || !each.name.ends_with(end))
            continue;
        std::string name = each.name.substr(1, each.name.size() - 1 - end.size());
        const bool is_good = std::ranges::all_of(name, [](char c) {
            return is_letter(c) || is_digit(c) || c == '.' || c == '-' || c == '_';
        });
        if (name.empty() || !is_good)
            return refuse(400, fmt::format("{} {}: write @NAME-master with the NAME of `sentinel "
                                           "monitor`, of letters, digits, '.', '-' and '_'",
                                           flag, each.name));
        each.master = std::move(name);
    }
    return {};
}

std::string_view backend_source::host() const noexcept {
    if (!where || where->host.empty() || is_localhost(where->host)) return {};
    return endpoint::ip(where->host, where->port) ? std::string_view() : where->host;
}

namespace {

/// Backends that are gathered from sources.
class gathering {
public:
    gathering(followed_addresses known, const std::vector<std::string>& drained, scheme carrier)
        : names_(known.names), masters_(known.masters), drained_(drained), carrier_(carrier) {}

    void add(wanted_backend one) {
        const auto known = std::ranges::find_if(all_, [&](const wanted_backend& each) {
            return (each.where == one.where && each.at == one.at) || each.name == one.name;
        });
        if (std::ranges::find(drained_, one.name) != drained_.end()) one.is_drained = true;
        if (known != all_.end()) {
            // One of several sources that have it may be drained.
            known->is_drained = known->is_drained || one.is_drained;
            return;
        }
        if (all_.size() == max_backends) return;
        EDDY_ASSERT(one.weight >= 1 && one.weight <= max_weight);
        all_.push_back(std::move(one));
    }

    /// The addresses of a host, each as `like` but for its name and address.
    void add_host(const wanted_backend& like) {
        EDDY_ASSERT(!like.where.host.empty() && like.where.port != 0);
        if (names_ == nullptr) return;
        for (endpoint each : names_->addresses_of(like.where.host)) {
            each.set_port(like.where.port);
            wanted_backend one = like;
            one.name = fmt::format("{}://{}:{}/{}", transport::to_string(like.where.kind),
                                   like.where.host, like.where.port, each.host());
            one.at = each;
            add(std::move(one));
        }
    }

    void add_service(const backend_source& of) {
        EDDY_ASSERT(!of.where && !of.service.empty());
        if (names_ == nullptr) return;
        for (const eddy::proxy::service_server& each : names_->servers_of(of.service)) {
            wanted_backend like;
            like.where.kind = carrier_ == scheme::tls ? scheme::tcp : carrier_;
            like.where.host = each.host;
            like.where.port = each.port;
            like.weight = each.weight;
            like.is_backup = of.is_backup || each.is_backup;
            like.is_drained = is_drained(of);
            add_host(like);
        }
    }

    void add_master(const backend_source& of) {
        EDDY_ASSERT(!of.where && !of.master.empty());
        if (masters_ == nullptr) return;
        const auto now = masters_->master_of(of.master);
        if (!now) return;
        wanted_backend one{now->where};
        one.name = fmt::format("{}/{}", of.name, eddy::proxy::host_and_port(now->where));
        one.weight = of.weight;
        one.is_backup = of.is_backup;
        one.is_drained = is_drained(of);
        // A client of a former master must not write to it.
        one.keeps_clients = false;
        add(std::move(one));
    }

    bool is_drained(const backend_source& of) const {
        return std::ranges::find(drained_, of.name) != drained_.end();
    }
    std::vector<wanted_backend>& all() noexcept { return all_; }

private:
    const eddy::proxy::followed_names* const names_;
    const eddy::proxy::followed_masters* const masters_;
    const std::vector<std::string>& drained_;
    const scheme carrier_;
    std::vector<wanted_backend> all_;
};

/// The address of each runtime that is preferred, by name; those of other members last, so that no
/// limit leaves out one of this daemon.
served_addresses best_of(const served_addresses& all, std::string_view self, scheme carrier) {
    std::map<std::pair<bool, std::string_view>, const served_address*> best;
    for (const served_address& its : all) {
        if (!is_carried(its.where, carrier) || its.runtime == self) continue;
        const auto [at, is_new] = best.try_emplace({its.is_remote, its.runtime}, &its);
        if (!is_new && rank(its.where, carrier) < rank(at->second->where, carrier))
            at->second = &its;
    }
    served_addresses made;
    for (const auto& [key, its] : best) {
        if (made.size() == max_backends) break;
        made.push_back(*its);
    }
    return made;
}

}  // namespace

std::vector<wanted_backend> resolve(const std::vector<backend_source>& sources, const host& daemon,
                                    std::string_view self, followed_addresses known,
                                    const std::vector<std::string>& drained, bool is_local_first,
                                    scheme carrier) {
    gathering found(known, drained, carrier);
    for (const backend_source& each : sources) {
        if (!each.service.empty()) {
            found.add_service(each);
            continue;
        }
        if (!each.master.empty()) {
            found.add_master(each);
            continue;
        }
        if (each.where) {
            wanted_backend one{*each.where, each.name, each.weight, each.is_backup};
            one.is_drained = found.is_drained(each);
            if (each.host().empty())
                found.add(std::move(one));
            else
                found.add_host(one);
            continue;
        }
        const auto served = daemon.resolve(each.name);
        if (!served) continue;  // until there is one
        for (served_address& its : best_of(*served, self, carrier)) {
            transport::address& where = its.where;
            if (carrier == scheme::tls && where.kind == scheme::tls) {
                where.kind = scheme::tcp;
                where.tls = {};
            }
            // This daemon has the port, so no other program answers there; its certificate is for
            // another name. That of another member is verified.
            if (where.kind == scheme::tls && !its.is_remote) where.tls.verify = "none";
            const bool is_backup = each.is_backup || (is_local_first && its.is_remote);
            found.add(
                {std::move(where), its.runtime, each.weight, is_backup, found.is_drained(each)});
        }
    }
    return std::move(found.all());
}

}  // namespace eddy::runtime::proxy
