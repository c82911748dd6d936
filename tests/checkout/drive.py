#!/usr/bin/env python3
"""Drives the checkout example from outside, as a shop's clients would.

usage: drive.py PATH-OF-THE-EXAMPLE

Starts its gateway and two of its servers on one SQLite file, does on purpose
what goes wrong in production, and checks what each client gets and what the
gateway charged. Standard library only; exits non-zero at the first surprise.
"""
import http.client
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor

EXAMPLE = sys.argv[1]
children = []


def free_address():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return "127.0.0.1:%d" % s.getsockname()[1]


def start(*arguments):
    address = free_address()
    child = subprocess.Popen([EXAMPLE, arguments[0], "--addr", address, *arguments[1:]],
                             stdout=subprocess.DEVNULL)
    children.append(child)
    for _ in range(500):
        try:
            socket.create_connection(tuple(address.split(":")), timeout=1).close()
            return address, child
        except OSError:
            assert child.poll() is None, "%s did not start" % arguments[0]
            time.sleep(0.02)
    raise AssertionError("%s does not listen" % arguments[0])


def request(address, method, path, body=None, headers=None, timeout=30):
    connection = http.client.HTTPConnection(address, timeout=timeout)
    try:
        data = None if body is None else (body if isinstance(body, str) else json.dumps(body))
        connection.request(method, path, data,
                           {"Content-Type": "application/json", **(headers or {})})
        answer = connection.getresponse()
        kept = sorted((k, v) for k, v in answer.getheaders() if k.lower() != "date")
        return answer.status, kept, answer.read()
    finally:
        connection.close()


def checkout(address, key, order, amount=4200, customer=None, timeout=30):
    headers = {} if key is None else {"Idempotency-Key": key}
    if customer:
        headers["X-Customer"] = customer
    body = {"order_id": order, "amount": amount, "currency": "EUR"}
    return request(address, "POST", "/checkout", body, headers, timeout)


def until_done(address, *arguments, **options):
    """A client that honours Retry-After."""
    for _ in range(20):
        answer = checkout(address, *arguments, **options)
        retry = dict((k.lower(), v) for k, v in answer[1]).get("retry-after")
        if answer[0] != 409 or retry is None:
            return answer
        time.sleep(float(retry))
    raise AssertionError("still 409")


def charges(order=None):
    status, _, body = request(gateway, "GET", "/charges")
    assert status == 200, status
    return [c for c in json.loads(body) if order in (None, c["order_id"])]


def fault(**faults):
    assert request(gateway, "POST", "/faults", faults)[0] < 300


def problem(answer, status):
    assert answer[0] == status, answer
    headers = dict((k.lower(), v) for k, v in answer[1])
    assert headers["content-type"].startswith("application/problem+json"), headers
    body = json.loads(answer[2])
    assert body["type"] and body["title"] and body["status"] == status, body
    return body, headers


def check(name, scenario):
    started = time.monotonic()
    scenario()
    print("ok  %-52s %4.1f s" % (name, time.monotonic() - started), flush=True)


def all_at_once():
    with ThreadPoolExecutor(20) as pool:
        answers = list(pool.map(
            lambda i: checkout(servers[i % 2], "once", "o-once"), range(20)))
    first = answers[0]
    assert first[0] == 201 and json.loads(first[2])["id"].startswith("ch_"), first
    assert any(k.lower() == "location" for k, _ in first[1]), first
    assert all(a == first for a in answers), "answers differ"
    assert len(charges("o-once")) == 1
    assert checkout(servers[1], "once", "o-once") == first, "a later replay differs"


def impatient_client():
    fault(delay_ms=800)
    try:
        checkout(servers[0], "slow", "o-slow", timeout=0.3)
        raise AssertionError("the client did not time out")
    except TimeoutError:
        pass
    answer = until_done(servers[0], "slow", "o-slow")
    fault(delay_ms=0)
    assert answer[0] == 201 and len(charges("o-slow")) == 1, answer


def client_closes():
    """A connection that is closed after the headers, after the body, after the charge."""
    for when in ("headers", "body", "charge"):
        order = "o-closes-" + when
        body = json.dumps({"order_id": order, "amount": 4200, "currency": "EUR"})
        head = ("POST /checkout HTTP/1.1\r\nHost: shop\r\nContent-Type: application/json\r\n"
                "Idempotency-Key: closes-%s\r\nContent-Length: %d\r\n\r\n" % (when, len(body)))
        fault(hold_response_ms=500)
        with socket.create_connection(tuple(servers[0].split(":"))) as client:
            client.sendall((head + ("" if when == "headers" else body)).encode())
            while when == "charge" and not charges(order):
                time.sleep(0.01)
        fault(hold_response_ms=0)
        assert when != "headers" or not charges(order), "charged without a body"
        answer = until_done(servers[1], "closes-" + when, order)
        assert answer[0] == 201 and len(charges(order)) == 1, (when, answer)


def still_running():
    # Longer than a server lets its callers wait: whichever comes second is told.
    fault(delay_ms=5000)
    with ThreadPoolExecutor(2) as pool:
        answers = sorted(pool.map(lambda s: checkout(s, "long", "o-long"), servers))
    fault(delay_ms=0)
    assert answers[0][0] == 201, answers
    _, headers = problem(answers[1], 409)
    assert float(headers["retry-after"]) > 0
    assert until_done(servers[1], "long", "o-long") == answers[0]
    assert len(charges("o-long")) == 1


def lost_answer():
    fault(drop_responses=1)
    first = checkout(servers[0], "lost", "o-lost")
    body, _ = problem(first, 409)
    assert len(charges("o-lost")) == 1, "charged, although the answer was lost"
    answer = until_done(servers[1], "lost", "o-lost")
    assert answer[0] == 201 and len(charges("o-lost")) == 1, answer
    return body


def other_payload():
    assert checkout(servers[0], "amount", "o-amount")[0] == 201
    problem(checkout(servers[1], "amount", "o-amount", amount=9900), 422)
    problem(checkout(servers[1], "amount", "o-other"), 422)
    assert len(charges("o-amount")) == 1 and not charges("o-other")


def two_customers():
    a = checkout(servers[0], "shared", "o-a", customer="alice")
    b = checkout(servers[0], "shared", "o-b", customer="bob")
    assert a[0] == b[0] == 201 and json.loads(a[2])["id"] != json.loads(b[2])["id"]
    assert len(charges("o-a")) == len(charges("o-b")) == 1


def bad_requests():
    before = len(charges())
    for key in (None, "", "   ", "k" * 256):
        problem(checkout(servers[0], key, "o-bad"), 400)
    assert request(servers[0], "POST", "/checkout", "{", {"Idempotency-Key": "bad"})[0] in (400, 422)
    assert len(charges()) == before
    assert checkout(servers[0], "k" * 255, "o-255")[0] == 201


def killed_server():
    fault(hold_response_ms=60000)
    doomed, child = start("serve", "--gateway", "http://" + gateway, "--store", store)

    def first():
        try:
            checkout(doomed, "killed", "o-killed")
        except (OSError, http.client.HTTPException):
            pass

    client = threading.Thread(target=first)
    client.start()
    while not charges("o-killed"):
        time.sleep(0.01)
    os.kill(child.pid, signal.SIGKILL)
    child.wait()
    client.join()
    fault(hold_response_ms=0)
    charged = charges("o-killed")
    answer = until_done(servers[1], "killed", "o-killed")
    assert answer[0] == 201, answer
    assert json.loads(answer[2])["id"] == charged[0]["id"] and len(charges("o-killed")) == 1
    assert until_done(servers[0], "killed", "o-killed") == answer


def three_hundred_orders():
    before = len(charges())

    def send(i):
        return checkout(servers[i % 2], "bulk-%d" % (i // 2), "o-bulk-%d" % (i // 2))

    with ThreadPoolExecutor(6) as pool:
        answers = list(pool.map(send, range(600)))
    assert all(a[0] == 201 for a in answers), {a[0] for a in answers}
    for i in range(0, 600, 2):
        assert answers[i] == answers[i + 1], i
    assert len({a[2] for a in answers}) == 300
    assert len(charges()) - before == 300


def store_away():
    # Another process keeps the file locked: nobody can reserve, so nobody runs.
    lock = sqlite3.connect(path, isolation_level=None)
    lock.execute("BEGIN EXCLUSIVE")
    try:
        problem(checkout(servers[0], "away", "o-away"), 503)
    finally:
        lock.execute("ROLLBACK")
        lock.close()
    assert not charges("o-away")
    assert until_done(servers[0], "away", "o-away")[0] == 201


with tempfile.TemporaryDirectory() as folder:
    try:
        path = os.path.join(folder, "shop.db")
        store = "sqlite://" + path
        gateway, _ = start("gateway")
        servers = [start("serve", "--gateway", "http://" + gateway, "--store", store)[0]
                   for _ in range(2)]
        check("20 identical requests over two servers", all_at_once)
        check("client times out, the charge goes on, retry", impatient_client)
        check("client closes after headers, body or charge, retry", client_closes)
        check("still running: 409 with Retry-After", still_running)
        check("the gateway's answer is lost, retry", lost_answer)
        check("same key, other amount or order: 422", other_payload)
        check("two customers, the same key", two_customers)
        check("missing, empty, blank, too long key: 400", bad_requests)
        check("kill -9 after the charge, retry elsewhere", killed_server)
        check("300 orders, each sent twice, six threads", three_hundred_orders)
        check("store away: 503, and nothing ran", store_away)
    finally:
        for child in children:
            child.kill()
            child.wait()
print("the checkout holds")
