// Redlock on ioredis: locks by a script.
'use strict';

const Redis = require('ioredis');
const Redlock = require('redlock');
const { version } = require('redlock/package.json');
const { assert, needs, port, run } = require('./steps');

const clients = [0, 1, 2].map((db) => new Redis({ port, db }));
const locks = new Redlock(clients, { retryCount: 3, retryDelay: 20 });
locks.on('clientError', (error) => console.error(error));

run(version, {
  async lock() {
    await needs('eval');
    const lock = await locks.acquire(['resource'], 30000);
    await assert.rejects(locks.acquire(['resource'], 1000), { name: 'LockError' });
    const longer = await lock.extend(40000);
    assert.ok(await clients[0].pttl('resource') > 30000);
    await longer.unlock();
    assert.equal(await clients[0].exists('resource'), 0);
  },
  async 'several resources'() {
    await needs('eval');
    const lock = await locks.acquire(['a', 'b'], 30000);
    await assert.rejects(locks.acquire(['b'], 1000), { name: 'LockError' });
    await lock.unlock();
    await (await locks.acquire(['b'], 1000)).unlock();
  },
});
