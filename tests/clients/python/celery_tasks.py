"""Celery with its broker and its results in the cache: a worker of its own, as `celery worker` starts it."""

import os
import subprocess
import sys
import time
import uuid

import celery
import redis
from celery import Celery, chain, chord, group

from steps import PORT, check, finish, has_command, needs, raises, say, step

app = Celery("celery_tasks", broker=f"redis://127.0.0.1:{PORT}/0", backend=f"redis://127.0.0.1:{PORT}/1")
app.conf.update(
    broker_connection_retry_on_startup=True, result_expires=600, task_track_started=True, worker_prefetch_multiplier=1,
    broker_transport_options={"priority_steps": [0, 5, 9], "queue_order_strategy": "priority",
                              "visibility_timeout": 60})


@app.task
def add(x, y):
    return x + y


@app.task
def total(numbers):
    return sum(numbers)


@app.task
def fail(text):
    raise ValueError(text)


@app.task(bind=True, max_retries=3)
def third_time(self, key):
    count = redis.Redis(port=PORT, db=2).incr(key)
    if count < 3:
        raise self.retry(countdown=0)
    return count


@app.task(bind=True)
def progress(self):
    self.update_state(state="PROGRESS", meta={"done": 50})
    return "whole"


WAIT = {"timeout": 30, "interval": 0.05}


def one_task():
    result = add.delay(2, 3)
    check(result.get(**WAIT), 5)
    check(result.state, "SUCCESS")


def many_tasks():
    results = [add.delay(i, i) for i in range(200)]
    check([each.get(**WAIT) for each in results], [2 * i for i in range(200)])


def a_failure():
    raises(ValueError, "no good", fail.delay("no good").get, **WAIT)


def a_chain():
    check(chain(add.s(1, 2), add.s(10), add.s(100))().get(**WAIT), 113)


def a_group():
    check(group(add.s(i, 1) for i in range(10))().get(**WAIT), list(range(1, 11)))


def a_chord():
    check(chord((add.s(i, i) for i in range(10)), total.s())().get(**WAIT), 90)


def retries():
    check(third_time.delay(uuid.uuid4().hex).get(**WAIT), 3)


def states():
    check(progress.delay().get(**WAIT), "whole")


def later():
    start = time.time()
    check(add.apply_async((1, 1), countdown=1).get(**WAIT), 2)
    check(time.time() - start >= 0.9, True, "the countdown")


def priorities():
    results = [add.apply_async((i, 0), priority=i % 10) for i in range(20)]
    check([each.get(**WAIT) for each in results], list(range(20)))


def control():
    check(list(app.control.ping(timeout=5)[0].values()), [{"ok": "pong"}])
    check("celery_tasks.add" in list(app.control.inspect(timeout=5).registered().values())[0], True)


def revoked():
    result = add.apply_async((1, 1), countdown=5)
    result.revoke()
    raises(celery.exceptions.TaskRevokedError, "", result.get, **WAIT)


STEPS = [one_task, many_tasks, a_failure, a_chain, a_group, a_chord, retries, states, later, priorities, control,
         revoked]


def main():
    say(f"version {celery.__version__}")
    if not has_command("evalsha"):
        # Its worker ends at its start without them, as it takes a lock of redis-py.
        for function in STEPS:
            step(function.__name__.replace("_", " "), needs, "evalsha")
        finish()
    here = os.path.dirname(os.path.abspath(__file__))
    worker = subprocess.Popen([sys.executable, "-m", "celery", "-A", "celery_tasks", "worker", "--pool", "threads",
                               "--concurrency", "2", "--loglevel", "info"], cwd=here, stdout=sys.stderr,
                              stdin=subprocess.DEVNULL)
    try:
        for function in STEPS:
            step(function.__name__.replace("_", " "), function)
    finally:
        worker.terminate()
        try:
            worker.wait(30)
        except subprocess.TimeoutExpired:
            worker.kill()
            worker.wait()
    finish()


if __name__ == "__main__":
    # The worker imports this file under its name; tasks must be the same on both sides.
    import celery_tasks
    celery_tasks.main()
