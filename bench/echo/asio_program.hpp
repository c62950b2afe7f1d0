// Shared parts of the rivals on standalone Asio: its inclusion, and a completion token that gives
// error codes and knows the context's own executor instead of the type-erased one.
#pragma once

// Asio 1.22 looks for Clang's coroutines where they were before they became standard.
#define ASIO_HAS_CO_AWAIT 1
#define ASIO_HAS_STD_COROUTINE 1
#include <asio.hpp>
#if __has_include(<asio/as_tuple.hpp>)
#include <asio/as_tuple.hpp>
namespace tuples = asio;
#else
#include <asio/experimental/as_tuple.hpp>
namespace tuples = asio::experimental;
#endif

using executor = asio::io_context::executor_type;
using token = tuples::as_tuple_t<asio::use_awaitable_t<executor>>;
using nothing = asio::awaitable<void, executor>;

inline constexpr token with_error_code{};
