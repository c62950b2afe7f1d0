// node-redis, as its users write it.
'use strict';

const { createClient, createClientPool, WatchError, ErrorReply, RESP_TYPES } = require('redis');
const { version } = require('redis/package.json');
const { assert, eventually, needs, NotYet, port, rejects, resp, restartServer, run, scheme } = require('./steps');

function make(options = {}) {
  const client = createClient({ url: `${scheme}://127.0.0.1:${port}`, RESP: resp, ...options });
  client.on('error', () => {});
  return client;
}
const connect = (options) => make(options).connect();
const everything = Buffer.concat([Buffer.from(Array.from({ length: 256 }, (_, i) => i)), Buffer.from('\r\n$5\r\n')]);
let r;

run(version, {
  async hello() {
    r = await connect();
    assert.equal(await r.ping(), 'PONG');
    const named = await connect({ name: 'eddy-test', clientInfoTag: 'tag' });
    const info = await named.sendCommand(['CLIENT', 'INFO']);
    assert.match(String(info), /name=eddy-test/);
    if (/lib-name=/.test(info)) assert.match(String(info), /lib-name=node-redis/);
    if (/resp=/.test(info)) assert.match(String(info), new RegExp(`resp=${resp}`));
    assert.equal((await named.clientInfo()).name, 'eddy-test');
    named.destroy();
  },
  async strings() {
    assert.equal(await r.set('k', 'v'), 'OK');
    assert.equal(await r.get('k'), 'v');
    assert.equal(await r.get('none'), null);
    assert.equal(await r.set('k', 'w', { condition: 'NX' }), null);
    assert.equal(await r.set('k', 'w', { expiration: { type: 'EX', value: 100 }, GET: true }), 'v');
    assert.equal(await r.mSet({ a: '1', b: '2' }), 'OK');
    assert.deepEqual(await r.mGet(['a', 'b', 'none']), ['1', '2', null]);
    assert.equal(await r.incrBy('n', 42), 42);
    assert.equal(Number(await r.incrByFloat('n', 0.5)), 42.5);
    assert.equal(await r.getDel('k'), 'w');
    assert.equal(await r.del(['a', 'b', 'none']), 2);
    assert.equal(await r.exists('n'), 1);
  },
  async hashes() {
    assert.equal(await r.hSet('h', { a: 1, b: 'two' }), 2);
    assert.deepEqual({ ...await r.hGetAll('h') }, { a: '1', b: 'two' });
    assert.deepEqual(await r.hmGet('h', ['b', 'c']), ['two', null]);
    assert.equal(await r.hIncrBy('h', 'a', 4), 5);
    assert.equal(await r.hDel('h', ['a']), 1);
    assert.deepEqual(await r.hKeys('h'), ['b']);
  },
  async lists() {
    assert.equal(await r.rPush('l', ['a', 'b', 'c']), 3);
    assert.deepEqual(await r.lRange('l', 0, -1), ['a', 'b', 'c']);
    assert.equal(await r.lPop('l'), 'a');
    assert.deepEqual(await r.rPopCount('l', 5), ['c', 'b']);
    assert.equal(await r.lLen('l'), 0);
  },
  async sets() {
    assert.equal(await r.sAdd('s', ['a', 'b', 'c']), 3);
    assert.deepEqual([...await r.sMembers('s')].sort(), ['a', 'b', 'c']);
    assert.equal(Boolean(await r.sIsMember('s', 'a')), true);
    await r.sAdd('t', ['b', 'd']);
    assert.deepEqual([...await r.sInter(['s', 't'])], ['b']);
    assert.equal(await r.sInterCard(['s', 't']), 1);
  },
  async 'sorted sets'() {
    assert.equal(await r.zAdd('z', [{ score: 1, value: 'a' }, { score: 2.5, value: 'b' }, { score: Infinity, value: 'c' }]), 3);
    assert.equal(await r.zScore('z', 'b'), 2.5);
    assert.deepEqual(await r.zRangeWithScores('z', 0, -1),
      [{ value: 'a', score: 1 }, { value: 'b', score: 2.5 }, { value: 'c', score: Infinity }]);
    assert.deepEqual(await r.zRange('z', '(1', '+inf', { BY: 'SCORE', LIMIT: { offset: 0, count: 1 } }), ['b']);
    assert.equal(await r.zIncrBy('z', 10, 'a'), 11);
    assert.equal(await r.zRank('z', 'a'), 1);
    assert.deepEqual(await r.zPopMin('z'), { value: 'b', score: 2.5 });
    assert.deepEqual(await r.zmScore('z', ['a', 'none']), [11, null]);
  },
  async expiry() {
    await r.setEx('e', 100, '1');
    assert.ok(await r.ttl('e') > 0);
    assert.equal(Boolean(await r.expire('e', 50, 'LT')), true);
    assert.equal(Boolean(await r.persist('e')), true);
    await r.pExpire('e', 1);
    await eventually(async () => await r.get('e') === null, "the key's end");
  },
  async pipeline() {
    // Commands of one turn of the event loop go out together.
    const replies = await Promise.all(Array.from({ length: 5000 }, (_, i) => [r.set(`p${i}`, String(i)), r.get(`p${i}`)]).flat());
    assert.equal(replies[9999], '4999');
  },
  async transactions() {
    await r.set('balance', '10');
    assert.deepEqual(await r.multi().incr('balance').get('balance').exec(), [11, '11']);
    const other = await connect();
    await other.watch('balance');
    await r.set('balance', '100');
    await assert.rejects(other.multi().set('balance', '1').exec(), WatchError);
    assert.equal(await r.get('balance'), '100');
    await rejects(r.multi().set('balance', '1').addCommand(['NOSUCH']).exec(), 'unknown command');
    other.destroy();
  },
  async 'pub/sub'() {
    const sub = await connect();
    const got = [];
    await sub.subscribe('news', (message, channel) => got.push([channel, message]));
    await sub.pSubscribe('n*s', (message, channel) => got.push(['pattern', channel, message]));
    await sub.subscribe('bytes', (message) => got.push(message.length), true);
    assert.equal((await r.pubSubNumSub(['news'])).news, 1);
    assert.equal(await r.publish('news', 'hello'), 2);
    assert.equal(await r.publish('bytes', everything), 1);
    await eventually(() => got.length === 3, 'the messages');
    assert.deepEqual(got.filter(Array.isArray).sort(), [['news', 'hello'], ['pattern', 'news', 'hello']]);
    assert.ok(got.includes(everything.length));
    await sub.unsubscribe();
    await sub.pUnsubscribe();
    assert.equal(await sub.get('none'), null);
    await sub.sSubscribe('shard', (message) => got.push(message));
    assert.equal(await r.sPublish('shard', 'x'), 1);
    await eventually(() => got.length === 4, 'the sharded message');
    sub.destroy();
  },
  async scan() {
    await Promise.all(Array.from({ length: 3000 }, (_, i) => r.set(`scan:${i}`, '1')));
    const seen = new Set();
    for await (const keys of r.scanIterator({ MATCH: 'scan:*', COUNT: 100 })) keys.forEach((key) => seen.add(key));
    assert.equal(seen.size, 3000);
    await r.hSet('bigh', Object.fromEntries(Array.from({ length: 1000 }, (_, i) => [`f${i}`, i])));
    let fields = 0;
    for await (const entries of r.hScanIterator('bigh')) fields += entries.length;
    assert.equal(fields, 1000);
  },
  async blocking() {
    const blocked = await connect();
    const start = Date.now();
    assert.equal(await blocked.blPop('empty', 1), null);
    assert.ok(Date.now() - start >= 900);
    const pop = blocked.brPop(['q1', 'q2'], 30);
    await eventually(async () => /blocked_clients:1/.test(await r.info('clients')), 'a blocked client');
    await r.lPush('q2', 'job');
    assert.deepEqual({ ...await pop }, { key: 'q2', element: 'job' });
    blocked.destroy();
  },
  async binary() {
    const raw = r.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer });
    assert.equal(String(await raw.set(everything, everything)), 'OK');
    assert.deepEqual(await raw.get(everything), everything);
  },
  async large() {
    const value = Buffer.alloc(40 << 20, 'abcdefg');
    await r.set('large', value);
    assert.ok(value.equals(await r.withTypeMapping({ [RESP_TYPES.BLOB_STRING]: Buffer }).get('large')));
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
    await assert.rejects(r.lPush('str', '1'), (error) => error instanceof ErrorReply &&
      error.message === 'WRONGTYPE Operation against a key holding the wrong kind of value');
    await rejects(r.incr('str'), 'ERR value is not an integer or out of range');
    await rejects(r.sendCommand(['NOSUCH', 'x']), "ERR unknown command 'NOSUCH', with args beginning with: 'x'");
  },
  async databases() {
    const three = await connect({ database: 3 });
    await three.set('only', 'here');
    assert.equal(await r.exists('only'), 0);
    await r.select(3);
    assert.equal(await r.get('only'), 'here');
    await r.select(0);
    await three.flushDb();
    three.destroy();
  },
  async pool() {
    const pool = createClientPool({ url: `${scheme}://127.0.0.1:${port}`, RESP: resp }, { minimum: 2, maximum: 8 });
    pool.on('error', () => {});
    await pool.connect();
    await Promise.all(Array.from({ length: 500 }, () => pool.incr('counter')));
    assert.equal(await pool.get('counter'), '500');
    pool.destroy();
  },
  async commands() {
    const all = await r.command();
    assert.ok(all.some((each) => each.name === 'get' && each.arity === 2));
    assert.equal(await r.commandCount(), all.length);
    assert.ok((await r.configGet('max*')).maxmemory !== undefined);
  },
  async password() {
    await r.configSet('requirepass', 'open sesame');
    const good = await connect({ password: 'open sesame' });
    try {
      const bad = make({ password: 'wrong', socket: { reconnectStrategy: false } });
      await rejects(bad.connect(), 'WRONGPASS');
      const none = make({ socket: { reconnectStrategy: false } });
      await rejects(none.connect().then(() => none.get('x')), 'NOAUTH');
      assert.equal(await good.ping(), 'PONG');
      const url = await createClient({ url: `${scheme}://default:open%20sesame@127.0.0.1:${port}/1` }).connect();
      assert.equal(await url.ping(), 'PONG');
      url.destroy();
    } finally {
      await good.configSet('requirepass', '');
      good.destroy();
    }
  },
  async restart() {
    const sub = await connect();
    const got = [];
    await sub.subscribe('again', (message) => got.push(message));
    await restartServer();
    await eventually(() => r.set('after', '1').then(() => true, () => false), 'a reconnect');
    await eventually(async () => await r.publish('again', 'x') && got.length, 'the subscription again');
    sub.destroy();
  },
  async scripts() {
    await needs('eval', 'evalsha');
    assert.deepEqual(await r.eval('return {KEYS[1], ARGV[1]}', { keys: ['k'], arguments: ['v'] }), ['k', 'v']);
    const sha = await r.scriptLoad("return redis.call('INCRBY', KEYS[1], ARGV[1])");
    assert.equal(await r.evalSha(sha, { keys: ['sn'], arguments: ['21'] }), 21);
  },
  async functions() {
    await needs('function', 'fcall');
    await r.functionLoad("#!lua name=eddylib\nredis.register_function('f', function(keys, args) return args[1] end)", { REPLACE: true });
    assert.equal(await r.fCall('f', { arguments: ['x'] }), 'x');
    await r.functionDelete('eddylib');
  },
  async streams() {
    await needs('xadd', 'xreadgroup', 'xautoclaim');
    const id = await r.xAdd('stream', '*', { a: '1' });
    await r.xGroupCreate('stream', 'g', '0');
    const got = await r.xReadGroup('g', 'me', { key: 'stream', id: '>' }, { COUNT: 10 });
    assert.equal(got[0].messages[0].id, id);
    assert.equal(await r.xAck('stream', 'g', id), 1);
    const infos = await r.xInfoGroups('stream');
    assert.equal(infos[0].name, 'g');
  },
  async tracking() {
    await needs('client|tracking');
    if (resp !== 3) throw new NotYet('node-redis keeps a client-side cache with RESP3 alone');
    const cached = await connect({ clientSideCache: { ttl: 0, maxEntries: 100 } });
    await r.set('tracked', '1');
    assert.equal(await cached.get('tracked'), '1');
    await r.set('tracked', '2');
    await eventually(async () => await cached.get('tracked') === '2', 'the invalidation');
    cached.destroy();
  },
  async acl() {
    await needs('acl|setuser', 'acl|whoami');
    assert.equal(await r.aclWhoAmI(), 'default');
    await r.aclSetUser('reader', ['on', '>secret', '+@read', '~pub:*']);
    const reader = await connect({ username: 'reader', password: 'secret', disableClientInfo: true });
    await rejects(reader.set('pub:x', '1'), 'NOPERM');
    reader.destroy();
    await r.aclDelUser('reader');
  },
});
