// Choice of a backend, and its counts.
#include "runtime/proxy/balancer.hpp"

#include <eddy/base/assert.hpp>

#include <algorithm>
#include <utility>

namespace eddy::runtime::proxy {
namespace {

std::optional<endpoint> numeric_of(const transport::address& where) {
    result<endpoint> read = fail(errc::unsupported);
    if (where.kind == transport::scheme::tcp)
        read = endpoint::ip(where.host, where.port);
    else if (where.kind == transport::scheme::unix_socket)
        read = endpoint::unix_path(where.path);
    if (!read) return std::nullopt;
    return *read;
}

}  // namespace

backend::backend(transport::address where, std::size_t workers)
    : where_(std::move(where)),
      name_(where_.to_string()),
      numeric_(numeric_of(where_)),
      counted_(workers) {}

std::uint64_t backend::sum(serving::tally backend_counters::* of) const noexcept {
    std::uint64_t all = 0;
    for (const backend_counters& each : counted_) all += each.*of;
    return all;
}

balancer::balancer(strategy chosen, backend_list all) : chosen_(chosen), all_(std::move(all)) {
    EDDY_ASSERT(!all_.empty() && all_.size() <= max_backends);
}

balancer::selection::selection(balancer& from) noexcept
    : from_(from), start_(from.turns_.fetch_add(1, std::memory_order_relaxed) % from.all_.size()) {}

std::shared_ptr<backend> balancer::selection::next() noexcept {
    if (tries_ == from_.all_.size()) return nullptr;
    const std::size_t index =
        from_.chosen_ == strategy::round_robin ? next_in_ring() : next_by_count();
    tried_ |= std::uint64_t{1} << index;
    ++tries_;
    return from_.all_[index];
}

std::size_t balancer::selection::next_in_ring() const noexcept {
    return (start_ + tries_) % from_.all_.size();
}

std::size_t balancer::selection::next_by_count() const noexcept {
    const std::size_t count = from_.all_.size();
    std::size_t best = count;
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t index = (start_ + i) % count;
        if (is_tried(index)) continue;
        if (best == count || from_.all_[index]->open() < from_.all_[best]->open()) best = index;
    }
    EDDY_ASSERT(best < count);
    return best;
}

backend_list update_backends(const backend_list& known,
                             const std::vector<transport::address>& wanted, std::size_t workers) {
    backend_list all;
    for (const transport::address& where : wanted) {
        const auto found = std::ranges::find_if(known, [&](const std::shared_ptr<backend>& each) {
            return each->where() == where && each->workers() == workers;
        });
        all.push_back(found != known.end() ? *found : std::make_shared<backend>(where, workers));
    }
    return all;
}

}  // namespace eddy::runtime::proxy
