"""redis-py, as its users write it; of version 4.3 (Debian's) or newer."""

import os
import threading
import time

import redis

from steps import (CA, NotYet, PORT, RESP, check, eventually, finish, needs, raises, restart_server, say, step)


# As keywords of a client and as what its URL asks for.
TLS = {} if CA is None else {"ssl": True, "ssl_ca_certs": CA}


def connect(**more):
    more.update(TLS)
    if RESP == 3:
        more["protocol"] = 3
    elif int(redis.__version__.split(".", maxsplit=1)[0]) >= 5:
        more["protocol"] = 2
    return redis.Redis(host="127.0.0.1", port=PORT, **more)


def url(database, user=""):
    place = f"{user}127.0.0.1:{PORT}/{database}"
    return f"redis://{place}" if CA is None else f"rediss://{place}?ssl_ca_certs={CA}"


r = connect(decode_responses=True)
raw = connect()


def hello():
    check(r.ping(), True)
    named = connect(client_name="eddy-test", decode_responses=True)
    info = named.client_info()
    check(info["name"], "eddy-test")
    check(named.client_getname(), "eddy-test")
    if "lib-name" in info and int(redis.__version__.split(".", maxsplit=1)[0]) >= 5:
        check("redis-py" in info["lib-name"], True, f"lib-name {info['lib-name']!r}")
    if "resp" in info:
        check(int(info["resp"]), RESP)
    check(any(each["name"] == "eddy-test" for each in named.client_list()), True, "CLIENT LIST")
    check(isinstance(r.info()["redis_version"], str), True)
    check(r.echo("hello"), "hello")
    check(abs(r.time()[0] - time.time()) < 3600, True, "TIME")
    check(r.config_get("maxmemory*")["maxmemory"], "0")
    named.close()


def strings():
    check(r.set("k", "v"), True)
    check(r.get("k"), "v")
    check(r.get("none"), None)
    check(r.set("k", "w", nx=True), None)
    check(r.set("k", "w", xx=True, get=True), "v")
    check(r.mset({"a": 1, "b": 2}), True)
    check(r.mget("a", "b", "none"), ["1", "2", None])
    check(r.incr("n"), 1)
    check(r.incrby("n", 41), 42)
    check(r.decr("n"), 41)
    check(r.incrbyfloat("n", 0.5), 41.5)
    check(r.append("k", "!"), 2)
    check(r.strlen("k"), 2)
    check(r.getrange("k", 0, 0), "w")
    check(r.setrange("k", 1, "?"), 2)
    check(r.getdel("k"), "w?")
    check(r.setbit("bits", 7, 1), 0)
    check(r.bitcount("bits"), 1)
    check(r.msetnx({"a": 3, "z": 1}), False)
    check(r.delete("a", "b", "none"), 2)
    check(r.exists("n", "n", "none"), 2)
    check(r.type("n"), "string")


def hashes():
    check(r.hset("h", mapping={"a": 1, "b": "two"}), 2)
    check(r.hget("h", "a"), "1")
    check(r.hgetall("h"), {"a": "1", "b": "two"})
    check(r.hmget("h", "b", "c"), ["two", None])
    check(r.hincrby("h", "a", 4), 5)
    check(r.hincrbyfloat("h", "a", 0.25), 5.25)
    check(r.hexists("h", "c"), False)
    check(r.hdel("h", "a", "c"), 1)
    check(r.hkeys("h"), ["b"])
    check(r.hvals("h"), ["two"])
    check(r.hlen("h"), 1)
    check(r.hsetnx("h", "b", "x"), False)
    check(r.hrandfield("h"), "b")
    check(r.hstrlen("h", "b"), 3)


def lists():
    check(r.rpush("l", "a", "b", "c"), 3)
    check(r.lpush("l", "z"), 4)
    check(r.lrange("l", 0, -1), ["z", "a", "b", "c"])
    check(r.lpop("l"), "z")
    check(r.rpop("l", 2), ["c", "b"])
    check(r.linsert("l", "after", "a", "b"), 2)
    check(r.lset("l", 1, "x"), True)
    check(r.lindex("l", 1), "x")
    check(r.lpos("l", "x"), 1)
    check(r.lmove("l", "m", "LEFT", "RIGHT"), "a")
    check(r.llen("l"), 1)
    check(r.lrem("l", 0, "x"), 1)
    check(r.exists("l"), 0)
    check(r.ltrim("m", 0, 0), True)


def sets():
    check(r.sadd("s", "a", "b", "c"), 3)
    check(r.smembers("s"), {"a", "b", "c"})
    check(bool(r.sismember("s", "a")), True)
    check([int(x) for x in r.smismember("s", ["a", "x"])], [1, 0])
    check(r.srem("s", "c"), 1)
    check(r.scard("s"), 2)
    r.sadd("t", "b", "d")
    check(set(r.sinter("s", "t")), {"b"})
    check(set(r.sunion("s", "t")), {"a", "b", "d"})
    check(set(r.sdiff("s", "t")), {"a"})
    check(r.sintercard(2, ["s", "t"]), 1)
    check(r.sunionstore("u", "s", "t"), 3)
    check(r.smove("s", "t", "a"), True)
    check(r.spop("s"), "b")


def sorted_sets():
    check(r.zadd("z", {"a": 1, "b": 2.5, "c": 3}), 3)
    check(r.zscore("z", "b"), 2.5)
    # Pairs are tuples in RESP2 and lists in RESP3.
    check([tuple(x) for x in r.zrange("z", 0, -1, withscores=True)], [("a", 1.0), ("b", 2.5), ("c", 3.0)])
    check(r.zrange("z", 0, 0, desc=True), ["c"])
    check(r.zrangebyscore("z", "(1", "+inf"), ["b", "c"])
    check(r.zrangebylex("z", "-", "+"), ["a", "b", "c"])
    check(r.zincrby("z", 10, "a"), 11.0)
    check(r.zrank("z", "a"), 2)
    check(r.zrevrank("z", "a"), 0)
    check(r.zmscore("z", ["a", "x"]), [11.0, None])
    check(r.zcount("z", 0, 5), 2)
    check(r.zadd("z", {"a": 1}, gt=True), 0)
    check(r.zunionstore("zu", {"z": 2}), 3)
    check(r.zscore("zu", "a"), 22.0)
    popped = r.zpopmin("z")
    check([tuple(x) for x in popped] if isinstance(popped[0], (list, tuple)) else [tuple(popped)], [("b", 2.5)])
    check(r.zrem("z", "a", "c"), 2)
    r.geoadd("geo", (13.361389, 38.115556, "Palermo"))
    check(r.geohash("geo", "Palermo"), ["sqc8b49rny0"])
    check(r.pfadd("hll", "a", "b"), 1)
    check(r.pfcount("hll"), 2)


def expiry():
    r.set("e", 1, ex=100)
    check(0 < r.ttl("e") <= 100, True)
    check(r.persist("e"), True)
    check(r.ttl("e"), -1)
    check(r.expire("e", 100, nx=True) if has_nx() else True, True)
    check(r.pexpire("e", 1), True)
    eventually(lambda: r.get("e") is None, "the key's end")
    check(r.ttl("e"), -2)
    r.set("e", 1, px=100000)
    check(r.getex("e", persist=True), "1")
    r.expireat("e", int(time.time()) + 50)
    check(0 < r.pttl("e") <= 51000, True)


def has_nx():
    return "nx" in redis.Redis.expire.__code__.co_varnames


def pipelines():
    with r.pipeline(transaction=False) as p:
        for i in range(10000):
            p.set(f"p{i}", i)
        for i in range(10000):
            p.get(f"p{i}")
        replies = p.execute()
    check(replies[:10000], [True] * 10000)
    check(replies[10000:], [str(i) for i in range(10000)])
    with r.pipeline(transaction=False) as p:
        replies = p.set("str", "x").lpush("str", "y").get("str").execute(raise_on_error=False)
    check(replies[0], True)
    check(isinstance(replies[1], redis.ResponseError), True)
    check(replies[2], "x")


def transactions():
    r.set("balance", 10)
    with r.pipeline() as p:
        check(p.incr("balance").get("balance").execute(), [11, "11"])
    with r.pipeline() as p:
        p.watch("balance")
        before = int(p.get("balance"))
        r.set("balance", 100)
        p.multi()
        p.set("balance", before + 1)
        raises(redis.WatchError, "", p.execute)
    check(r.get("balance"), "100")

    def raise_it(p):
        now = int(p.get("balance"))
        p.multi()
        p.set("balance", now + 1)
    check(r.transaction(raise_it, "balance"), [True])
    check(r.get("balance"), "101")
    with r.pipeline() as p:
        p.set("balance", "x")
        p.execute_command("NO SUCH")
        raises(redis.ResponseError, "unknown command", p.execute)


def pubsub():
    p = r.pubsub()
    p.subscribe("news")
    p.psubscribe("n*s")
    check(p.get_message(timeout=60)["type"], "subscribe")
    check(p.get_message(timeout=60)["type"], "psubscribe")
    check(r.pubsub_numsub("news"), [("news", 1)])
    check(r.pubsub_channels(), ["news"])
    check(r.publish("news", "hello"), 2)
    got = [p.get_message(timeout=60), p.get_message(timeout=60)]
    check(sorted((m["type"], m["pattern"], m["channel"], m["data"]) for m in got),
          [("message", None, "news", "hello"), ("pmessage", "n*s", "news", "hello")])
    if RESP == 2:
        # redis-py takes RESP3's answer, which is a plain string, for a message.
        p.ping()
        check(p.get_message(timeout=60)["type"], "pong")
    p.unsubscribe()
    check(p.get_message(timeout=60)["type"], "unsubscribe")
    p.close()
    seen = []
    q = r.pubsub(ignore_subscribe_messages=True)
    q.subscribe(jobs=lambda message: seen.append(message["data"]))
    worker = q.run_in_thread(sleep_time=0.01)
    eventually(lambda: r.publish("jobs", "one") == 1, "a subscriber")
    eventually(lambda: seen, "a message")
    worker.stop()
    worker.join()


def scanning():
    r.mset({f"scan:{i}": i for i in range(3000)})
    check(len(set(r.scan_iter("scan:*", count=100))), 3000)
    check(r.keys("scan:299?"), r.keys("scan:299?"))
    r.hset("bigh", mapping={f"f{i}": i for i in range(2000)})
    check(len(dict(r.hscan_iter("bigh"))), 2000)
    r.sadd("bigs", *range(2000))
    check(len(set(r.sscan_iter("bigs"))), 2000)
    r.zadd("bigz", {str(i): i for i in range(2000)})
    check(len(dict(r.zscan_iter("bigz"))), 2000)
    check(all(k.startswith("big") for k in r.scan_iter(_type="zset", match="big*")), True)


def blocking():
    start = time.monotonic()
    check(r.blpop("empty", timeout=1), None)
    check(time.monotonic() - start >= 0.9, True, "the time-out")
    got = []
    waiter = threading.Thread(target=lambda: got.append(connect(decode_responses=True).brpop(["q1", "q2"], timeout=30)))
    waiter.start()
    eventually(lambda: int(r.info("clients")["blocked_clients"]) == 1, "a blocked client")
    r.lpush("q2", "job")
    waiter.join(30)
    check([tuple(x) for x in got], [("q2", "job")])
    r.rpush("src", "x")
    check(r.blmove("src", "dst", 1), "x")


def blocking_sorted_sets():
    needs("bzpopmin")
    r.zadd("bz", {"a": 1})
    check(tuple(r.bzpopmin("bz", timeout=5)), ("bz", "a", 1.0))
    check(r.bzpopmax("bz", timeout=1), None)


def binary():
    everything = bytes(range(256)) * 3 + b"\r\n$5\r\n"
    check(raw.set(everything, everything), True)
    check(raw.get(everything), everything)
    raw.hset(b"bh\0\xff", everything, everything)
    check(raw.hgetall(b"bh\0\xff"), {everything: everything})
    check(raw.set("", b""), True)
    check(raw.get(""), b"")


def large():
    value = os.urandom(1 << 20) * 40
    raw.set("large", value)
    check(raw.get("large") == value, True)
    check(raw.strlen("large"), len(value))
    raw.delete("large")


def unicode():
    for text in ("Zażółć gęślą jaźń", "日本語", "😀\u200d🚀", "\u0000\u2028"):
        r.set("u:" + text, text)
        check(r.get("u:" + text), text)


def errors():
    r.set("str", "x")
    raises(redis.ResponseError, "WRONGTYPE Operation against a key holding the wrong kind of value",
           r.lpush, "str", 1)
    raises(redis.ResponseError, "value is not an integer or out of range", r.incr, "str")
    raises(redis.ResponseError, "unknown command", r.execute_command, "NOSUCH", "x")
    raises(redis.ResponseError, "wrong number of arguments for 'get' command", r.execute_command, "GET")
    raises(redis.ResponseError, "no such key", r.rename, "none", "other")
    raises(redis.ResponseError, "syntax error", r.execute_command, "SET", "a", "b", "BAD")
    r.sort("none")


def databases():
    three = connect(db=3, decode_responses=True)
    three.set("only", "here")
    check(r.exists("only"), 0)
    check(three.dbsize(), 1)
    check(three.move("only", 4), True)
    check(connect(db=4).get("only"), b"here")
    check(three.swapdb(3, 4), True)
    check(three.get("only"), "here")
    three.flushdb()
    raises(redis.ResponseError, "DB index is out of range", connect(db=99).ping)


def pool():
    shared = redis.BlockingConnectionPool.from_url(url(0), max_connections=4, timeout=30,
                                                   **({"protocol": 3} if RESP == 3 else {}))
    client = redis.Redis(connection_pool=shared)
    client.delete("counter")

    def work():
        for _ in range(200):
            client.incr("counter")
    workers = [threading.Thread(target=work) for _ in range(8)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    check(client.get("counter"), b"1600")
    shared.disconnect()
    check(redis.from_url(url(2)).ping(), True)


def password():
    r.config_set("requirepass", "open sesame")
    try:
        raises(redis.AuthenticationError, "", connect().ping)
        raises((redis.AuthenticationError, redis.ResponseError), "", connect(password="wrong").ping)
        check(connect(password="open sesame").ping(), True)
        check(connect(username="default", password="open sesame").ping(), True)
        check(redis.from_url(url(1, ":open%20sesame@")).ping(), True)
    finally:
        connect(password="open sesame").config_set("requirepass", "")


def restart():
    client = connect(decode_responses=True)
    client.set("before", 1)
    listener = client.pubsub(ignore_subscribe_messages=True)
    listener.subscribe("again")
    listener.get_message(timeout=5)
    restart_server()
    # The pool's connections are dead; redis-py opens new ones by itself.
    check(eventually(lambda: quiet_ping(client), "a reconnect"), True)
    check(client.set("after", 1), True)

    def heard():
        try:
            client.publish("again", "x")
            return listener.get_message(timeout=0.1)
        except redis.ConnectionError:
            return None
    check(eventually(heard, "the subscription again")["data"], "x")
    listener.close()


def quiet_ping(client):
    try:
        return client.ping()
    except redis.ConnectionError:
        return False


def locks():
    # redis-py's Lock releases by a script.
    needs("eval", "evalsha", "script|load")
    lock = r.lock("lock", timeout=30)
    check(lock.acquire(blocking=False), True)
    check(r.lock("lock", timeout=30).acquire(blocking=False), False)
    check(lock.extend(10), True)
    lock.release()
    check(r.exists("lock"), 0)
    with r.lock("lock", timeout=30):
        pass
    raises(redis.exceptions.LockError, "", lock.release)


def scripts():
    needs("eval", "evalsha", "script|load")
    check(r.eval("return {KEYS[1], ARGV[1]}", 1, "k", "v"), ["k", "v"])
    double = r.register_script("return redis.call('INCRBY', KEYS[1], ARGV[1])")
    check(double(keys=["sn"], args=[21]), 21)
    check(double(keys=["sn"], args=[21]), 42)
    with r.pipeline() as p:
        double(keys=["sn"], args=[1], client=p)
        check(p.execute(), [43])
    raises(redis.exceptions.NoScriptError, "", r.evalsha, "0" * 40, 0)
    raises(redis.ResponseError, "boom", r.eval, "return redis.error_reply('boom')", 0)


def streams():
    needs("xadd", "xreadgroup", "xautoclaim")
    first = r.xadd("stream", {"a": 1})
    r.xadd("stream", {"b": 2}, maxlen=100)
    check(r.xlen("stream"), 2)
    check(r.xrange("stream")[0], (first, {"a": "1"}))
    r.xgroup_create("stream", "g", id="0")
    got = r.xreadgroup("g", "me", {"stream": ">"}, count=10, block=1000)
    entries = got[0][1] if isinstance(got, list) else list(got.values())[0][0]
    check(len(entries), 2)
    check(r.xpending("stream", "g")["pending"], 2)
    check(r.xack("stream", "g", first), 1)
    check(r.xread({"stream": "$"}, block=100) or [], [])


def tracking():
    needs("client|tracking")
    if RESP != 3:
        raise NotYet("redis-py keeps a client-side cache with RESP3 alone")
    from redis.cache import CacheConfig
    if tuple(int(x) for x in r.info("server")["redis_version"].split(".")[:2]) < (7, 4):
        raise NotYet("redis-py wants a redis_version of 7.4 or more")
    cached = connect(decode_responses=True, cache_config=CacheConfig())
    r.set("tracked", "1")
    check(cached.get("tracked"), "1")
    check(cached.get("tracked"), "1")
    r.set("tracked", "2")
    eventually(lambda: cached.get("tracked") == "2", "the invalidation")


def acl():
    needs("acl|setuser", "acl|whoami", "acl|deluser")
    check(r.acl_whoami(), "default")
    r.acl_setuser("reader", enabled=True, passwords=["+secret"], categories=["+@read"], keys=["pub:*"], reset=True)
    try:
        reader = connect(username="reader", password="secret", decode_responses=True)
        r.set("pub:x", "1")
        check(reader.get("pub:x"), "1")
        raises(redis.exceptions.NoPermissionError, "", reader.set, "pub:x", 2)
        raises(redis.exceptions.NoPermissionError, "", reader.get, "private")
    finally:
        r.acl_deluser("reader")


def asynchronous():
    import asyncio
    from redis import asyncio as aredis

    async def main():
        client = aredis.Redis(host="127.0.0.1", port=PORT, decode_responses=True, **TLS,
                              **({"protocol": 3} if RESP == 3 else {}))
        await client.set("async", "1")
        # Connections of their own: in any order.
        check(sorted(await asyncio.gather(*(client.incr("async") for _ in range(50)))), list(range(2, 52)))
        async with client.pipeline(transaction=True) as p:
            check(await p.get("async").ttl("async").execute(), ["51", -1])
        async with client.pubsub() as p:
            await p.subscribe("achan")
            await p.get_message(timeout=60)
            await client.publish("achan", "hi")
            message = await p.get_message(timeout=60)
            check(message["data"], "hi")
        await (client.aclose() if hasattr(client, "aclose") else client.close())
    asyncio.run(main())


say(f"version {redis.__version__}")
STEPS = [hello, strings, hashes, lists, sets, sorted_sets, expiry, pipelines, transactions, pubsub, scanning, blocking,
         blocking_sorted_sets, binary, large, unicode, errors, databases, pool, password, restart, locks, scripts,
         streams, tracking, acl, asynchronous]
for function in STEPS:
    step(function.__name__.replace("_", " "), function)
finish()
