"""Django's cache and sessions on django-redis."""

import django
import django_redis
from django.conf import settings

from steps import PORT, check, eventually, finish, needs, raises, restart_server, say, step

settings.configure(
    CACHES={
        "default": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"redis://127.0.0.1:{PORT}/1",
                    "KEY_PREFIX": "site", "OPTIONS": {"CLIENT_CLASS": "django_redis.client.DefaultClient"}},
        "packed": {"BACKEND": "django_redis.cache.RedisCache", "LOCATION": f"redis://127.0.0.1:{PORT}/2",
                   "OPTIONS": {"COMPRESSOR": "django_redis.compressors.zlib.ZlibCompressor",
                               "SERIALIZER": "django_redis.serializers.json.JSONSerializer"}},
        "builtin": {"BACKEND": "django.core.cache.backends.redis.RedisCache",
                    "LOCATION": f"redis://127.0.0.1:{PORT}/3"},
    },
    SESSION_ENGINE="django.contrib.sessions.backends.cache", INSTALLED_APPS=["django.contrib.sessions"])
django.setup()

from django.core.cache import cache, caches  # noqa: E402
from django_redis import get_redis_connection  # noqa: E402


def values():
    check(cache.set("a", {"x": [1, 2, None], "y": "ż"}), True)
    check(cache.get("a"), {"x": [1, 2, None], "y": "ż"})
    check(cache.get("none", "default"), "default")
    check(cache.add("a", 1), False)
    check(cache.get_or_set("b", lambda: 5), 5)
    cache.set_many({"m1": 1, "m2": "two"})
    check(cache.get_many(["m1", "m2", "m3"]), {"m1": 1, "m2": "two"})
    check(cache.delete_many(["m1", "m2"]), 2)
    check(cache.has_key("a"), True)
    check(cache.delete("a"), True)
    check(get_redis_connection("default").exists("site:1:b"), 1)


def timeouts():
    cache.set("t", 1, timeout=100)
    check(0 < cache.ttl("t") <= 100, True)
    check(cache.persist("t"), True)
    check(cache.ttl("t"), None)
    check(cache.expire("t", timeout=50), True)
    check(cache.pexpire("t", timeout=5), True)
    eventually(lambda: cache.get("t") is None, "the key's end")
    check(cache.touch("none"), False)


def counters():
    needs("eval")
    cache.set("n", 1, timeout=100)
    check(cache.incr("n"), 2)
    check(cache.decr("n", 2), 0)
    raises(ValueError, "", cache.incr, "none")


def patterns():
    cache.set_many({f"pat:{i}": i for i in range(500)})
    check(len(list(cache.iter_keys("pat:*"))), 500)
    check(len(cache.keys("pat:49?")), 10)
    check(cache.delete_pattern("pat:*"), 500)
    cache.set("w", 1, version=1)
    check(cache.incr_version("w"), 2)
    check(cache.get("w", version=2), 1)


def locks():
    needs("eval", "evalsha")
    with cache.lock("lock", timeout=10):
        check(cache.lock("lock").acquire(blocking=False), False)
    check(cache.lock("lock").acquire(blocking=False), True)


def compressed():
    packed = caches["packed"]
    packed.set("big", ["text"] * 100000)
    check(packed.get("big"), ["text"] * 100000)
    packed.clear()
    check(packed.get("big"), None)


def builtin_backend():
    builtin = caches["builtin"]
    builtin.set("a", [1], 30)
    check(builtin.get("a"), [1])
    check(builtin.add("a", 2), False)
    builtin.set("n", 1)
    check(builtin.incr("n"), 2)
    builtin.set_many({"x": 1, "y": 2})
    check(builtin.get_many(["x", "y"]), {"x": 1, "y": 2})
    builtin.clear()


def sessions():
    from django.contrib.sessions.backends.cache import SessionStore
    session = SessionStore()
    session["user"] = 7
    session.create()
    again = SessionStore(session_key=session.session_key)
    check(again["user"], 7)
    again.flush()
    check(SessionStore(session_key=session.session_key).get("user"), None)


def restart():
    cache.set("before", 1)
    restart_server()

    def works():
        try:
            return cache.set("after", 1) and cache.get("after") == 1
        except django_redis.exceptions.ConnectionInterrupted:
            return False
    eventually(works, "a reconnect")


say(f"version {django_redis.__version__} on Django {django.__version__}")
for function in [values, timeouts, counters, patterns, locks, compressed, builtin_backend, sessions, restart]:
    step(function.__name__.replace("_", " "), function)
finish()
