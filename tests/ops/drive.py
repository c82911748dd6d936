#!/usr/bin/env python3
"""Drives the page for operators in a browser, at night, with a charge in doubt.

usage: drive.py CHECKOUT OPS_PAGE [--images FOLDER]

A checkout server is killed in the middle of a charge, and the one that gets the
retry cannot reach the gateway. Somebody signs in to the page, finds the charge,
reads its label and why it is stuck, and settles it; the retry then replays what
was settled, and nothing is charged again. `--images` writes the pictures that
the documentation shows. Standard library only; needs chromium and chromedriver.
"""
import base64
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

CHECKOUT, OPS_PAGE = sys.argv[1:3]
IMAGES = sys.argv[4] if sys.argv[3:4] == ["--images"] else None
TOKEN = "a-token-that-only-this-test-knows"
children = []


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def start(*command, port, **options):
    child = subprocess.Popen(command, stdout=subprocess.DEVNULL, **options)
    children.append(child)
    for _ in range(1500):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
            return child
        except OSError:
            assert child.poll() is None, "%s did not start" % command[0]
            time.sleep(0.02)
    raise AssertionError("%s does not listen" % command[0])


def stop(child):
    child.kill()
    child.wait()


def request(port, method, path, body=None, headers=None, timeout=60):
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=timeout)
    try:
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, data, headers)
        answer = connection.getresponse()
        return answer.status, dict(answer.getheaders()), answer.read()
    finally:
        connection.close()


class Browser:
    """As much of WebDriver as this needs."""

    def __init__(self, port):
        self.port = port
        options = {"args": ["--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                            "--hide-scrollbars", "--window-size=1280,900"]}
        # Between two pages there is none: what is looked for may come yet.
        wanted = {"alwaysMatch": {"goog:chromeOptions": options, "timeouts": {"implicit": 10000},
                                  "goog:loggingPrefs": {"browser": "ALL"}}}
        self.session = self.send("POST", "/session", {"capabilities": wanted})["sessionId"]

    def send(self, method, path, body=None):
        status, _, answer = request(self.port, method, path, body, timeout=120)
        value = json.loads(answer)["value"]
        assert status == 200, value
        return value

    def call(self, method, path, body=None):
        return self.send(method, "/session/%s%s" % (self.session, path), body)

    def open(self, address):
        self.call("POST", "/url", {"url": address})

    def address(self):
        return self.call("GET", "/url")

    def find(self, css):
        found = self.call("POST", "/element", {"using": "css selector", "value": css})
        return next(iter(found.values()))

    def link(self, text):
        found = self.call("POST", "/element", {"using": "link text", "value": text})
        return next(iter(found.values()))

    def click(self, element):
        self.call("POST", "/element/%s/click" % element, {})

    def follow(self, element):
        """Clicks on what leads to another page, and waits until this one is gone."""
        self.click(element)
        deadline = time.monotonic() + 20
        path = "/session/%s/element/%s/name" % (self.session, element)
        while request(self.port, "GET", path, None, timeout=120)[0] == 200:
            assert time.monotonic() < deadline, "the page is still there"
            time.sleep(0.02)

    def type(self, css, text):
        self.call("POST", "/element/%s/value" % self.find(css), {"text": text})

    def press(self, key):
        action = [{"type": "keyDown", "value": key}, {"type": "keyUp", "value": key}]
        keys = {"type": "key", "id": "keyboard", "actions": action}
        self.call("POST", "/actions", {"actions": [keys]})

    def text(self, css="body"):
        return self.call("GET", "/element/%s/text" % self.find(css))

    def script(self, script):
        return self.call("POST", "/execute/sync", {"script": script, "args": []})

    def cdp(self, command, **params):
        return self.call("POST", "/goog/cdp/execute", {"cmd": command, "params": params})

    def scheme(self, name):
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.cdp("Emulation.setEmulatedMedia", features=features)

    def screen(self, width, height, scale=1, mobile=False):
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=height,
                 deviceScaleFactor=scale, mobile=mobile)

    def picture(self, name, height=None):
        if IMAGES:
            if height:
                self.screen(1280, height)
            image = base64.b64decode(self.cdp("Page.captureScreenshot", format="png")["data"])
            with open(os.path.join(IMAGES, name + ".png"), "wb") as file:
                file.write(image)
            if height:
                self.screen(1280, 900)

    def complaints(self):
        """What the browser wrote into its console, such as a policy that was broken."""
        log = self.call("POST", "/se/log", {"type": "browser"})
        # The status of a page is no complaint.
        return [entry for entry in log if "status of 4" not in entry["message"]]


# Contrast of text with what is behind it, by WCAG 2.1; the background is the
# nearest that is not transparent.
CONTRAST = """
const light = (c) => { const [r, g, b] = c.match(/[\\d.]+/g).map(v => v / 255)
  .map(v => v <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const behind = (e) => { for (; e; e = e.parentElement) { const c = getComputedStyle(e).backgroundColor;
  if (!/, 0\\)$/.test(c)) return c; } return 'rgb(255, 255, 255)'; };
const poor = [];
for (const e of document.querySelectorAll('body *')) {
  const own = [...e.childNodes].some(n => n.nodeType === 3 && n.textContent.trim());
  if (!own || !e.getClientRects().length || e.closest('svg')) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(behind(e))];
  const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
  if (ratio < 4.5) poor.push(e.outerHTML.slice(0, 120) + ' ' + ratio.toFixed(2));
}
return poor;
"""


def check(name, scenario):
    started = time.monotonic()
    scenario()
    print("ok  %-58s %4.1f s" % (name, time.monotonic() - started), flush=True)


def gateway_of(port):
    return ["--gateway", "http://127.0.0.1:%d" % port]


def checkout(port, key, order, amount=4200):
    body = {"order_id": order, "amount": amount, "currency": "EUR"}
    return request(port, "POST", "/checkout", body, {"Idempotency-Key": key})


def in_background(*arguments):
    """A client that does not care what becomes of its request."""
    def send():
        try:
            checkout(*arguments)
        except (OSError, http.client.HTTPException):
            pass
    threading.Thread(target=send, daemon=True).start()


def charges():
    return {c["order_id"]: c for c in json.loads(request(gateway, "GET", "/charges")[2])}


def wait_for(orders):
    while not set(orders) <= set(charges()):
        time.sleep(0.01)


def serve(gateway_port):
    port = free_port()
    child = start(CHECKOUT, "serve", "--addr", "127.0.0.1:%d" % port, *gateway_of(gateway_port),
                  "--store", store, port=port)
    return port, child


def faults(**faults):
    assert request(gateway, "POST", "/faults", faults)[0] < 300


def a_night():
    """Orders that go well, some that are still running, two that a kill leaves, one retry."""
    for number in range(300 if IMAGES else 30):
        assert checkout(healthy, "well-%d" % number, "o-%d" % (number + 700))[0] == 201
    faults(hold_response_ms=120000)
    for order in ("o-1040", "o-1041"):
        in_background(doomed, "key-" + order, order, 12900)
    wait_for(["o-1040", "o-1041"])
    os.kill(doomed_child.pid, signal.SIGKILL)
    doomed_child.wait()
    # The retry outlasts the lease of the dead, and cannot ask the gateway.
    status, _, answer = checkout(cut_off, "key-o-1040", "o-1040", 12900)
    assert status in (409, 503), (status, answer)
    for order in ("o-1050", "o-1051"):
        in_background(healthy, "key-" + order, order)
    wait_for(["o-1050", "o-1051"])


def sign_in():
    browser.open(page)
    assert "The token of this page" in browser.text(), browser.text()
    assert "o-1040" not in browser.script("return document.documentElement.outerHTML")
    browser.type("#token", "not-the-token-but-long-enough")
    browser.follow(browser.find("main button"))
    assert "This is not the token." in browser.text()
    browser.type("#token", TOKEN)
    browser.follow(browser.find("main button"))
    assert browser.address() == page, browser.address()
    cookies = browser.call("GET", "/cookie")
    assert [(c["httpOnly"], c["sameSite"], c["path"]) for c in cookies] == [(True, "Strict", "/ops")]
    assert TOKEN not in json.dumps(cookies)


def is_it_stuck():
    # The page's own engine has a grace of 5 seconds; until then the second one runs.
    deadline = time.monotonic() + 60
    while "1 attempt has lapsed, begun" not in browser.text("h1"):
        assert time.monotonic() < deadline, browser.text("h1")
        time.sleep(0.2)
        browser.open(page)
    verdict = browser.text("h1")
    assert verdict.startswith("1 outcome is unknown, for "), verdict
    rows = browser.text("section[aria-labelledby=stuck] tbody")
    assert "o-1040" in rows and "recovery asked, and got no decision" in rows, rows
    assert "o-1041" in rows and "process died, paused or cut off" in rows, rows
    running = browser.text("section[aria-labelledby=running] tbody")
    assert "o-1050" in running and "o-1051" in running, running
    browser.follow(browser.link("Last hour"))
    assert browser.script("return document.querySelectorAll('svg rect').length") > 0
    browser.open(page)


def why_is_it_stuck():
    row = browser.call("POST", "/element", {
        "using": "xpath", "value": "//tr[contains(., 'o-1040')]//a[contains(@class, 'id')]"})
    browser.follow(next(iter(row.values())))
    text = browser.text()
    for said in ("checkout.charge", "o-1040", "recovery asked, and got no decision", "order.amount",
                 "its outcome became unknown"):
        assert said in text, (said, text)
    for secret in ("key-o-1040", "12900", "ch_"):
        assert secret not in browser.script("return document.documentElement.outerHTML"), secret


def settle():
    browser.follow(browser.link("Settle it by hand"))
    assert not browser.script("return document.querySelector('#answer').checkVisibility()")
    browser.click(browser.find("#done"))
    assert browser.script("return document.querySelector('#answer').checkVisibility()")
    browser.type("#answer", json.dumps(settled))
    browser.type("#by", "ada@shop.example")
    browser.type("#why", "The provider's dashboard has this charge, so the money moved.")
    browser.picture("ops-settle")
    browser.type("#answer", ", and so on")
    browser.follow(browser.find("main form button"))
    assert "The answer is not JSON" in browser.text(), browser.text()
    browser.call("POST", "/element/%s/clear" % browser.find("#answer"), {})
    browser.type("#answer", json.dumps(settled))
    browser.follow(browser.find("main form button"))
    text = browser.text()
    for said in ("Settled.", "Completed", "ada@shop.example", "so the money moved"):
        assert said in text, (said, text)
    assert "ch_" not in browser.script("return document.documentElement.outerHTML")
    browser.picture("ops-settled", 580)
    browser.open(page)
    assert browser.text("h1").startswith("1 attempt has lapsed"), browser.text("h1")


def the_retry_replays():
    port, _ = serve(gateway)
    before = len(charges())
    status, headers, answer = checkout(port, "key-o-1040", "o-1040", 12900)
    headers = {name.lower(): value for name, value in headers.items()}
    assert status == 201, (status, answer)
    assert json.loads(answer) == settled, answer
    assert headers["location"] == "/charges/" + settled["id"], headers
    assert len(charges()) == before, "charged again"
    # Its answer, not the gateway's: that would be this charge under its own id.
    assert settled["id"] != charges()["o-1040"]["id"]


def reads_well():
    record = page + "/records"
    for scheme in ("light", "dark"):
        browser.scheme(scheme)
        for width, height, scale, mobile in ((1280, 900, 1, False), (390, 844, 2, True)):
            browser.screen(width, height, scale, mobile)
            for address in (page, record + "?standing=completed", page + "/find", page + "/hour",
                            lapsed_record(), lapsed_record() + "/settle"):
                browser.open(address)
                wide = browser.script("return document.documentElement.scrollWidth")
                assert wide <= width, (address, wide, width)
                poor = browser.script(CONTRAST)
                assert not poor, (scheme, address, poor)
    browser.scheme("light")
    browser.screen(1280, 900)


def lapsed_record():
    browser.open(page + "/records?standing=lapsed")
    return browser.call("GET", "/element/%s/property/href" % browser.find("td a.id"))


def by_keyboard():
    browser.open(page)
    browser.press("\ue004")
    assert browser.script("return document.activeElement.textContent") == "Skip to the content"
    browser.press("\ue007")
    assert browser.script("return document.activeElement.id") == "main"
    seen = []
    while True:
        browser.press("\ue004")
        if browser.script("return document.activeElement === document.body"):
            break
        seen.append(browser.script("return document.activeElement.textContent.trim()"))
        ring = browser.script("return getComputedStyle(document.activeElement).outlineStyle")
        assert ring == "solid", (seen, ring)
    assert any("Unknown" in text for text in seen) and "Stop that" in seen, seen


def pictures():
    if IMAGES:
        an_hour_in_the_shop()
    browser.open(page)
    browser.picture("ops-light", 580)
    browser.open(page + "/hour")
    browser.picture("ops-hour", 360)
    browser.scheme("dark")
    browser.open(page)
    browser.picture("ops-dark", 580)
    browser.scheme("light")
    browser.screen(390, 844, 1.5, True)
    browser.open(page)
    browser.picture("ops-phone")
    browser.screen(1280, 900)


def an_hour_in_the_shop():
    """As if all this had taken longer: nothing but the pictures needs it."""
    minute = 60_000_000
    with sqlite3.connect(store.removeprefix("sqlite://")) as rows:
        rows.execute("PRAGMA busy_timeout = 5000")
        done = rows.execute("SELECT id, label FROM idem_records WHERE state = 2 ORDER BY label").fetchall()
        for number, (record, label) in enumerate(done):
            if label != "o-1040":
                ago = (number * 7919 % 100) * (number * 104729 % 60) * minute // 100
                rows.execute("UPDATE idem_records SET started_us = started_us - ?1,"
                             " finished_us = finished_us - ?1 WHERE id = ?2", (ago, record))
        rows.execute("UPDATE idem_records SET started_us = started_us - ?1, lease_until_us ="
                     " lease_until_us - ?1 WHERE label = 'o-1041'", (14 * minute,))
        rows.execute("UPDATE idem_records SET started_us = started_us - ?1, since_us = since_us - ?1,"
                     " finished_us = finished_us - ?1 WHERE label = 'o-1040'", (11 * minute,))
    rows.close()


def sign_out():
    browser.open(page)
    browser.follow(browser.find("header button"))
    assert "The token of this page" in browser.text()
    assert browser.call("GET", "/cookie") == []


settled = {"id": "ch_by_hand", "order_id": "o-1040", "amount": 12900, "currency": "EUR"}
with tempfile.TemporaryDirectory() as folder:
    browser = None
    try:
        store = "sqlite://" + os.path.join(folder, "shop.db")
        gateway, nobody, driver, ops = (free_port() for _ in range(4))
        start(CHECKOUT, "gateway", "--addr", "127.0.0.1:%d" % gateway, port=gateway)
        healthy, _ = serve(gateway)
        doomed, doomed_child = serve(gateway)
        cut_off, cut_off_child = serve(nobody)
        start(OPS_PAGE, store, "127.0.0.1:%d" % ops, port=ops,
              env={**os.environ, "IDEM_OPS_TOKEN": TOKEN})
        page = "http://127.0.0.1:%d/ops" % ops
        start("chromedriver", "--port=%d" % driver, "--log-level=SEVERE", port=driver)
        browser = Browser(driver)
        browser.screen(1280, 900)
        check("orders go well, one server is killed, one is cut off", a_night)
        stop(cut_off_child)
        check("only the token opens the page", sign_in)
        check("is anything stuck, how long, why", is_it_stuck)
        check("pictures", pictures)
        check("the record: its label, and why", why_is_it_stuck)
        browser.picture("ops-record", 580)
        check("settle it, after a slip", settle)
        check("the retry replays what was settled", the_retry_replays)
        check("light and dark, desk and phone: contrast, width", reads_well)
        check("by keyboard", by_keyboard)
        check("sign out", sign_out)
        complaints = browser.complaints()
        assert not complaints, complaints
    finally:
        if browser:
            browser.call("DELETE", "")
        for child in children:
            stop(child)
print("the page holds")
