"""RQ: jobs in queues, worked off by its worker."""

import datetime

import redis
import rq
from rq.job import Job

from steps import PORT, check, eventually, finish, needs, say, step

connection = redis.Redis(port=PORT)
queue = rq.Queue("work", connection=connection)


def double(x):
    return 2 * x


def fail():
    raise ValueError("no good")


def work(*names):
    # Without a process for each job, but otherwise as `rq worker --burst`.
    rq.SimpleWorker([rq.Queue(name, connection=connection) for name in names or ("work",)],
                    connection=connection).work(burst=True, with_scheduler=False, logging_level="WARNING")


def enqueue():
    needs("eval", "xadd")
    job = queue.enqueue("rq_jobs.double", 21)
    check(queue.job_ids, [job.id])
    work()
    check(job.get_status(refresh=True), "finished")
    check(job.return_value(), 42)
    check(job.id in queue.finished_job_registry, True)


def failure():
    needs("eval", "xadd")
    job = queue.enqueue("rq_jobs.fail")
    work()
    check(job.get_status(refresh=True), "failed")
    check("no good" in job.latest_result().exc_string, True)
    check(job.id in queue.failed_job_registry, True)
    job.requeue()
    check(job.get_status(refresh=True), "queued")
    work()


def depends():
    needs("eval", "xadd")
    first = queue.enqueue("rq_jobs.double", 1)
    second = queue.enqueue("rq_jobs.double", 2, depends_on=first)
    check(second.get_status(), "deferred")
    work()
    check(second.get_status(refresh=True), "finished")


def retry():
    needs("eval", "xadd")
    job = queue.enqueue("rq_jobs.fail", retry=rq.Retry(max=2))
    work()
    check(job.get_status(refresh=True), "failed")


def scheduled():
    needs("eval", "xadd")
    job = queue.enqueue_in(datetime.timedelta(hours=1), "rq_jobs.double", 3)
    check(job.id in queue.scheduled_job_registry, True)
    check(Job.fetch(job.id, connection=connection).args, (3,) if isinstance(job.args, tuple) else [3])
    job.delete()
    check(Job.exists(job.id, connection=connection), False)


def many():
    needs("eval", "xadd")
    with connection.pipeline() as pipe:
        jobs = queue.enqueue_many([rq.Queue.prepare_data("rq_jobs.double", args=(i,)) for i in range(50)],
                                  pipeline=pipe)
        pipe.execute()
    work()
    check([Job.fetch(job.id, connection=connection).return_value()
           for job in jobs], [2 * i for i in range(50)])


def workers():
    needs("eval", "xadd")
    check(rq.Worker.count(connection=connection), 0)
    eventually(lambda: queue.count == 0, "an empty queue")
    queue.delete(delete_jobs=True)


if __name__ == "__main__":
    say(f"version {rq.__version__ if hasattr(rq, '__version__') else rq.VERSION}")
    for function in [enqueue, failure, depends, retry, scheduled, many, workers]:
        step(function.__name__, function)
    finish()
