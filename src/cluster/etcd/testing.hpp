// Fixtures of the tests of membership by etcd, on a fake and on real servers.
#pragma once

#include "cluster/etcd/etcd_membership.hpp"
#include "cluster/testing.hpp"

#include <memory>
#include <string>

namespace eddy::cluster::testing {

/// A membership with its reports.
struct etcd_member {
    kept_reports notes;
    std::unique_ptr<etcd_membership> its;
    member_info self;

    etcd_membership& operator*() const noexcept { return *its; }
    etcd_membership* operator->() const noexcept { return its.get(); }
    std::string names() const { return names_of(*its->current()); }
};

}  // namespace eddy::cluster::testing
