// ioredis, as its users write it.
'use strict';

const Redis = require('ioredis');
const { version } = require('ioredis/package.json');
const { assert, eventually, needs, port, rejects, resp, restartServer, run, scheme, secure } = require('./steps');

function connect(options = {}) {
  const client = new Redis({ port, host: '127.0.0.1', protocol: resp, ...(secure ? { tls: {} } : {}), ...options });
  // Without a listener each broken connection is written to the log.
  client.on('error', () => {});
  return client;
}

const r = connect();
const everything = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.from('\r\n$5\r\n')]);

run(version, {
  async hello() {
    assert.equal(await r.ping(), 'PONG');
    const named = connect({ connectionName: 'eddy-test' });
    assert.equal(await named.client('GETNAME'), 'eddy-test');
    const info = await named.client('INFO');
    assert.match(info, /name=eddy-test/);
    if (/lib-name=/.test(info)) assert.match(info, /lib-name=ioredis/);
    assert.match(await r.info(), /redis_version:[78]/);
    assert.equal(r.status, 'ready');
    named.disconnect();
  },
  async strings() {
    assert.equal(await r.set('k', 'v'), 'OK');
    assert.equal(await r.get('k'), 'v');
    assert.equal(await r.get('none'), null);
    assert.equal(await r.set('k', 'w', 'NX'), null);
    assert.equal(await r.set('k', 'w', 'EX', 100, 'XX', 'GET'), 'v');
    assert.equal(await r.mset({ a: 1, b: 2 }), 'OK');
    assert.deepEqual(await r.mget('a', 'b', 'none'), ['1', '2', null]);
    assert.equal(await r.incrby('n', 42), 42);
    assert.equal(await r.incrbyfloat('n', 0.5), '42.5');
    assert.equal(await r.append('k', '!'), 2);
    assert.equal(await r.getdel('k'), 'w!');
    assert.equal(await r.del('a', 'b', 'none'), 2);
  },
  async hashes() {
    assert.equal(await r.hset('h', { a: 1, b: 'two' }), 2);
    assert.deepEqual({ ...await r.hgetall('h') }, { a: '1', b: 'two' });
    assert.deepEqual(await r.hmget('h', 'b', 'c'), ['two', null]);
    assert.equal(await r.hincrby('h', 'a', 4), 5);
    assert.equal(await r.hset('h', new Map([['c', '3']])), 1);
    assert.equal(await r.hdel('h', 'a', 'c'), 2);
    assert.deepEqual(await r.hkeys('h'), ['b']);
  },
  async lists() {
    assert.equal(await r.rpush('l', 'a', 'b', 'c'), 3);
    assert.deepEqual(await r.lrange('l', 0, -1), ['a', 'b', 'c']);
    assert.equal(await r.lpop('l'), 'a');
    assert.deepEqual(await r.rpop('l', 5), ['c', 'b']);
    assert.equal(await r.llen('l'), 0);
  },
  async sets() {
    assert.equal(await r.sadd('s', 'a', 'b', ['c']), 3);
    assert.deepEqual((await r.smembers('s')).sort(), ['a', 'b', 'c']);
    assert.equal(await r.sismember('s', 'a'), 1);
    await r.sadd('t', 'b', 'd');
    assert.deepEqual(await r.sinter('s', 't'), ['b']);
    assert.equal(await r.sunionstore('u', 's', 't'), 4);
  },
  async 'sorted sets'() {
    assert.equal(await r.zadd('z', 1, 'a', 2.5, 'b', 3, 'c'), 3);
    assert.equal(Number(await r.zscore('z', 'b')), 2.5);
    const pairs = await r.zrange('z', 0, 1, 'WITHSCORES');
    assert.deepEqual(pairs.flat().map(String), ['a', '1', 'b', '2.5']);
    assert.deepEqual(await r.zrangebyscore('z', '(1', '+inf', 'LIMIT', 0, 1), ['b']);
    assert.equal(Number(await r.zincrby('z', 10, 'a')), 11);
    assert.equal(await r.zrank('z', 'a'), 2);
    assert.deepEqual((await r.zpopmax('z')).flat().map(String), ['a', '11']);
  },
  async expiry() {
    await r.set('e', 1, 'PX', 100000);
    assert.ok(await r.pttl('e') > 0);
    assert.equal(await r.expire('e', 50, 'LT'), 1);
    assert.equal(await r.persist('e'), 1);
    assert.equal(await r.pexpire('e', 1), 1);
    await eventually(async () => await r.get('e') === null, "the key's end");
    assert.equal(await r.ttl('e'), -2);
  },
  async pipeline() {
    const many = r.pipeline();
    for (let i = 0; i < 5000; ++i) many.set(`p${i}`, i).get(`p${i}`);
    const replies = await many.exec();
    assert.equal(replies.length, 10000);
    assert.deepEqual(replies[9999], [null, '4999']);
    const mixed = await r.pipeline().set('str', 'x').lpush('str', 'y').get('str').exec();
    assert.match(mixed[1][0].message, /WRONGTYPE/);
    assert.equal(mixed[2][1], 'x');
    const auto = connect({ enableAutoPipelining: true });
    assert.deepEqual(await Promise.all([auto.get('p1'), auto.get('p2'), auto.mget('p3', 'p4')]), ['1', '2', ['3', '4']]);
    auto.disconnect();
  },
  async transactions() {
    await r.set('balance', 10);
    assert.deepEqual(await r.multi().incr('balance').get('balance').exec(), [[null, 11], [null, '11']]);
    const other = connect();
    await other.watch('balance');
    await r.set('balance', 100);
    assert.equal(await other.multi().set('balance', 1).exec(), null);
    assert.equal(await r.get('balance'), '100');
    await rejects(r.multi().set('balance', 1).call('NOSUCH').exec(), 'EXECABORT');
    const queued = connect();
    assert.equal(await queued.multi({ pipeline: false }), 'OK');
    assert.equal(await queued.set('x', 1), 'QUEUED');
    assert.deepEqual(await queued.exec(), [[null, 'OK']]);
    other.disconnect();
    queued.disconnect();
  },
  async 'pub/sub'() {
    const sub = connect();
    const got = [];
    sub.on('message', (channel, message) => got.push([channel, message]));
    sub.on('pmessage', (pattern, channel, message) => got.push([pattern, channel, message]));
    sub.on('messageBuffer', (channel, message) => got.push(message.length));
    assert.equal(await sub.subscribe('news', 'other'), 2);
    assert.equal(await sub.psubscribe('n*s'), 3);
    assert.deepEqual(await r.pubsub('NUMSUB', 'news'), ['news', 1]);
    assert.equal(await r.publish('news', 'hello'), 2);
    await eventually(() => got.length === 3, 'the messages');
    assert.deepEqual(got.filter(Array.isArray).sort(), [['n*s', 'news', 'hello'], ['news', 'hello']]);
    assert.equal(await sub.unsubscribe('news', 'other'), 1);
    assert.equal(await sub.punsubscribe('n*s'), 0);
    assert.equal(await sub.get('none'), null);
    sub.disconnect();
  },
  async scan() {
    const many = r.pipeline();
    for (let i = 0; i < 3000; ++i) many.set(`scan:${i}`, i);
    await many.exec();
    const seen = new Set();
    for await (const keys of r.scanStream({ match: 'scan:*', count: 100 })) keys.forEach((key) => seen.add(key));
    assert.equal(seen.size, 3000);
    await r.hset('bigh', Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, i])));
    let fields = 0;
    for await (const pairs of r.hscanStream('bigh')) fields += pairs.length / 2;
    assert.equal(fields, 1000);
  },
  async blocking() {
    const blocked = connect();
    const start = Date.now();
    assert.equal(await blocked.blpop('empty', 1), null);
    assert.ok(Date.now() - start >= 900);
    const pop = blocked.brpop('q1', 'q2', 30);
    await eventually(async () => /blocked_clients:1/.test(await r.info('clients')), 'a blocked client');
    await r.lpush('q2', 'job');
    assert.deepEqual(await pop, ['q2', 'job']);
    blocked.disconnect();
  },
  async binary() {
    assert.equal(await r.set(everything, everything), 'OK');
    assert.deepEqual(await r.getBuffer(everything), everything);
    await r.hset('bh', everything, everything);
    assert.deepEqual((await r.hgetallBuffer('bh'))[everything.toString()] ?? everything, everything);
  },
  async large() {
    const value = Buffer.alloc(40 << 20, 'abcdefg');
    await r.set('large', value);
    assert.ok(value.equals(await r.getBuffer('large')));
    await r.del('large');
  },
  async unicode() {
    for (const text of ['Zażółć gęślą jaźń', '日本語', '😀\u200d🚀']) {
      await r.set(`u:${text}`, text);
      assert.equal(await r.get(`u:${text}`), text);
    }
  },
  async errors() {
    await r.set('str', 'x');
    await assert.rejects(r.lpush('str', 1), (error) => error.name === 'ReplyError' &&
      error.message === 'WRONGTYPE Operation against a key holding the wrong kind of value');
    await rejects(r.incr('str'), 'ERR value is not an integer or out of range');
    await rejects(r.call('NOSUCH', 'x'), "ERR unknown command 'NOSUCH', with args beginning with: 'x'");
    await rejects(r.call('GET'), "ERR wrong number of arguments for 'get' command");
  },
  async databases() {
    const three = connect({ db: 3 });
    await three.set('only', 'here');
    assert.equal(await r.exists('only'), 0);
    assert.equal(await r.select(3), 'OK');
    assert.equal(await r.get('only'), 'here');
    await r.select(0);
    await three.flushdb();
    three.disconnect();
  },
  async monitor() {
    const watcher = connect();
    const monitor = await watcher.monitor();
    const seen = [];
    monitor.on('monitor', (time, args) => seen.push(args));
    await eventually(async () => {
      await r.set('watched', 1);
      return seen.some((args) => args.join(' ').toLowerCase() === 'set watched 1');
    }, 'a monitored command');
    monitor.disconnect();
    watcher.disconnect();
  },
  async password() {
    await r.config('SET', 'requirepass', 'open sesame');
    const good = connect({ password: 'open sesame' });
    try {
      const bad = connect({ retryStrategy: null, maxRetriesPerRequest: 0 });
      await rejects(bad.get('x'), 'NOAUTH');
      bad.disconnect();
      assert.equal(await good.ping(), 'PONG');
      const url = new Redis(`${scheme}://default:open%20sesame@127.0.0.1:${port}/1`);
      assert.equal(await url.ping(), 'PONG');
      url.disconnect();
    } finally {
      await good.config('SET', 'requirepass', '');
      good.disconnect();
    }
  },
  async restart() {
    const sub = connect();
    const got = [];
    sub.on('message', (channel, message) => got.push(message));
    await sub.subscribe('again');
    await restartServer();
    // Commands wait for the new connection, and the subscription is made anew.
    assert.equal(await r.set('after', 1), 'OK');
    await eventually(async () => await r.publish('again', 'x') && got.length, 'the subscription again');
    sub.disconnect();
  },
  async scripts() {
    await needs('eval', 'evalsha');
    assert.deepEqual(await r.eval('return {KEYS[1], ARGV[1]}', 1, 'k', 'v'), ['k', 'v']);
    r.defineCommand('double', { numberOfKeys: 1, lua: "return redis.call('INCRBY', KEYS[1], ARGV[1])" });
    assert.equal(await r.double('sn', 21), 21);
    assert.equal(await r.double('sn', 21), 42);
    assert.deepEqual(await r.pipeline().double('sn', 1).exec(), [[null, 43]]);
  },
  async streams() {
    await needs('xadd', 'xreadgroup');
    const id = await r.xadd('stream', '*', 'a', '1');
    await r.xgroup('CREATE', 'stream', 'g', '0');
    const got = await r.xreadgroup('GROUP', 'g', 'me', 'COUNT', 10, 'STREAMS', 'stream', '>');
    const entries = Array.isArray(got) ? got[0].length === 2 ? got[0][1] : got[1] : Object.values(got)[0];
    assert.deepEqual(entries, [[id, ['a', '1']]]);
    assert.equal(await r.xack('stream', 'g', id), 1);
  },
});
