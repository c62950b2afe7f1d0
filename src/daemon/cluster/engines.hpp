// Engines of clusters: the choice by the text of `eddy daemon --cluster`.
#pragma once

#include "base/problem.hpp"
#include "cluster/membership.hpp"

#include <memory>
#include <string>
#include <string_view>

namespace eddy::daemon {

/// True for a text that names an engine by a URI, such as etcd://10.0.0.1:2379; any other is a
/// folder.
bool is_engine_uri(std::string_view text) noexcept;

/// Refuses (400) a text that names no engine.
outcome<> check_engine(std::string_view text);

/// The engine of a text that check_engine() takes; a folder is an absolute path. `to` must outlive
/// it. Refuses (400) what the engine does not take.
outcome<std::unique_ptr<cluster::membership>> make_engine(const std::string& text,
                                                          cluster::observer& to);

/// The text for people: without a user and a password.
std::string shown_engine(std::string_view text);

}  // namespace eddy::daemon
