// BullMQ: queues, workers, delays, retries, flows and events. All of it stands on scripts and streams.
'use strict';

const { Queue, Worker, QueueEvents, FlowProducer } = require('bullmq');
const { version } = require('bullmq/package.json');
const { assert, eventually, needs, port, run } = require('./steps');

const connection = { host: '127.0.0.1', port, maxRetriesPerRequest: null };
const commands = ['eval', 'evalsha', 'xadd', 'bzpopmin'];
const opened = [];
const open = (thing) => {
  thing.on('error', (error) => console.error(error));
  opened.push(thing);
  return thing;
};

run(version, {
  async jobs() {
    await needs(...commands);
    const queue = open(new Queue('jobs', { connection }));
    const events = open(new QueueEvents('jobs', { connection }));
    await events.waitUntilReady();
    open(new Worker('jobs', async (job) => job.data.x * 2, { connection, concurrency: 4 }));
    const job = await queue.add('double', { x: 21 });
    assert.equal(await job.waitUntilFinished(events, 30000), 42);
    const jobs = await queue.addBulk(Array.from({ length: 100 }, (_, i) => ({ name: 'double', data: { x: i } })));
    assert.deepEqual(await Promise.all(jobs.map((each) => each.waitUntilFinished(events, 30000))),
      Array.from({ length: 100 }, (_, i) => 2 * i));
    await eventually(async () => (await queue.getJobCounts('completed')).completed === 101, 'the count');
  },
  async 'delays and priorities'() {
    await needs(...commands);
    const queue = open(new Queue('later', { connection }));
    const done = [];
    const start = Date.now();
    await queue.add('late', { n: 3 }, { delay: 500 });
    await queue.add('low', { n: 2 }, { priority: 10 });
    await queue.add('high', { n: 1 }, { priority: 1 });
    open(new Worker('later', async (job) => { done.push(job.data.n); }, { connection }));
    await eventually(() => done.length === 3, 'all jobs');
    assert.deepEqual(done, [1, 2, 3]);
    assert.ok(Date.now() - start >= 450);
  },
  async retries() {
    await needs(...commands);
    const queue = open(new Queue('retries', { connection }));
    const events = open(new QueueEvents('retries', { connection }));
    await events.waitUntilReady();
    let tries = 0;
    open(new Worker('retries', async () => {
      tries += 1;
      if (tries < 3) throw new Error('no good');
      return tries;
    }, { connection }));
    const job = await queue.add('x', {}, { attempts: 3, backoff: { type: 'fixed', delay: 50 } });
    assert.equal(await job.waitUntilFinished(events, 30000), 3);
  },
  async flows() {
    await needs(...commands);
    const flow = open(new FlowProducer({ connection }));
    const events = open(new QueueEvents('parents', { connection }));
    await events.waitUntilReady();
    open(new Worker('children', async (job) => job.data.n, { connection }));
    open(new Worker('parents', async (job) => Object.values(await job.getChildrenValues()).reduce((a, b) => a + b, 0), { connection }));
    const tree = await flow.add({
      name: 'sum', queueName: 'parents',
      children: [1, 2, 3].map((n) => ({ name: 'n', queueName: 'children', data: { n } })),
    });
    assert.equal(await tree.job.waitUntilFinished(events, 30000), 6);
  },
  async 'repeated jobs'() {
    await needs(...commands);
    const queue = open(new Queue('ticks', { connection }));
    let ticks = 0;
    open(new Worker('ticks', async () => { ticks += 1; }, { connection }));
    await queue.upsertJobScheduler('tick', { every: 100 });
    await eventually(() => ticks >= 3, 'ticks');
    assert.equal(await queue.removeJobScheduler('tick'), true);
  },
  async cleaning() {
    await needs(...commands);
    const queue = open(new Queue('cleaned', { connection }));
    await queue.addBulk(Array.from({ length: 10 }, (_, i) => ({ name: 'x', data: { i } })));
    assert.equal((await queue.getWaiting()).length, 10);
    await queue.pause();
    assert.equal(await queue.isPaused(), true);
    await queue.drain();
    assert.equal(await queue.count(), 0);
    await queue.obliterate({ force: true });
  },
  async close() {
    await Promise.all(opened.map((thing) => thing.close()));
  },
});
