// SPDX-License-Identifier: LGPL-2.1-or-later
// What the API says is put into the page as text, never as HTML: a host may call itself what it likes.
"use strict";

const EVERY_MS = 2000;
const PAGE = 512;
const PAGES_A_TURN = 4; // of each list, once it has been read to its end
const LOOKS_A_TURN = 32; // at what has just moved
const FRESH_MS = 8000;
const PATIENCE_MS = 5000;
const LISTS_PATIENCE_MS = 90000; // they wait while OpenSM computes ways

const $ = (id) => document.getElementById(id);
const count = (n) => n.toLocaleString("en");
const many = (n, one, more) => `${count(n)} ${n === 1 ? one : more || one + "s"}`;

// As a person may write it, in what a filter is compared with: a GUID also with colons, or without 0x.
const plain = (word) => String(word).toLowerCase().replace(/^0x/, "").replaceAll(":", "");
const text = (...parts) => parts.map(plain).join(" ");

function element(kind, words, text, title) {
  const e = document.createElement(kind);
  if (words) e.className = words;
  if (text !== undefined && text !== null) e.textContent = text;
  if (title) e.title = title;
  return e;
}

// ---- asking ----

class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail || `HTTP status ${status}`);
    this.status = status;
  }
}

const known = new Map(); // URL: {tag, body}

// {body, same}: same if it is what was answered the last time. keep: the body is the caller's to remember.
async function ask(url, keep, patience = LISTS_PATIENCE_MS) {
  const old = known.get(url);
  const answer = await fetch(url, {
    cache: "no-store", headers: old ? { "If-None-Match": old.tag } : {}, signal: AbortSignal.timeout(patience),
  });
  if (answer.status === 304) return { body: old.body, same: true };
  const body = await answer.json();
  if (!answer.ok && !("reasons" in body)) throw new Refused(answer.status, body);
  const tag = answer.headers.get("ETag");
  if (tag) known.set(url, { tag, body: keep ? body : { next: body.next } });
  return { body, same: false };
}

// A list that is read page by page. What a whole reading has not shown any more is gone.
class Reading {
  constructor(what, key) {
    this.what = what;
    this.key = key;
    this.rows = new Map();
    this.after = null;
    this.round = 1;
    this.begun = 0; // this round
    this.whole = 0; // when the last round began that came to its end
    this.urls = new Map(); // of each page: the keys of its rows
    this.seen = new Map(); // key: the round in which it was there
  }

  put(row) {
    row.text = text(row.vguid, row.lid, row.state, ...(row.pkeys || []));
    this.rows.set(row[this.key], row);
    this.seen.set(row[this.key], this.round);
  }

  drop(key) {
    this.rows.delete(key);
    this.seen.delete(key);
  }

  // The next page. True if anything is different.
  async turn() {
    const url = `/v1/${this.what}?limit=${PAGE}` + (this.after === null ? "" : `&after=${this.after}`);
    if (this.after === null) this.begun = Date.now();
    const { body, same } = await ask(url, false);
    if (same) {
      for (const key of this.urls.get(url)) if (this.rows.has(key)) this.seen.set(key, this.round);
    } else {
      this.urls.set(url, body[this.what].map((row) => row[this.key]));
      for (const row of body[this.what]) this.put(row);
    }
    this.after = body.next;
    return (this.after === null && this.end()) || !same;
  }

  end() {
    let gone = false;
    for (const [key, round] of this.seen) {
      if (round !== this.round) {
        this.drop(key);
        gone = true;
      }
    }
    if (this.urls.size > 2000) { // pages of which the beginnings have moved
      for (const url of this.urls.keys()) known.delete(url);
      this.urls.clear();
    }
    this.round++;
    this.whole = this.begun;
    return gone;
  }

  // Whole at first, then a part. told(): after each page of the first reading.
  async read(told) {
    let changed = false;
    for (let n = 0; this.whole === 0 || n < PAGES_A_TURN; n++) {
      changed = (await this.turn()) || changed;
      if (this.after === null) break;
      if (this.whole === 0) told();
    }
    return changed;
  }

  // One that is known to have changed.
  async look(key) {
    try {
      const { body } = await ask(`/v1/${this.what}/${key}`, true);
      if (this.what === "bindings" && body.state === "withdrawn") this.drop(key);
      else this.put(body);
    } catch (e) {
      if (e.status !== 404) throw e;
      this.drop(key);
    }
    known.delete(`/v1/${this.what}/${key}`);
    for (const [url, keys] of this.urls) if (keys.includes(key)) known.delete(url); // its row there may be older, or newer
  }
}

// ---- long lists ----

// Of all rows only those that are seen are in the page.
class List {
  constructor(box, height, make) {
    this.box = box;
    this.height = height;
    this.make = make;
    this.rows = [];
    this.space = element("div", "space");
    this.window = element("div");
    box.append(this.space, this.window);
    box.addEventListener("scroll", () => this.draw(), { passive: true });
    new ResizeObserver(() => this.draw()).observe(box);
    document.addEventListener("selectionchange", () => this.late && this.show(this.rows, this.none));
  }

  show(rows, none) {
    const selected = document.getSelection();
    this.rows = rows;
    this.none = none;
    this.late = !selected.isCollapsed && this.box.contains(selected.anchorNode); // somebody is about to copy a GUID
    if (this.late) return;
    this.space.style.height = `${rows.length * this.height}px`;
    this.draw();
  }

  draw() {
    const { scrollTop, clientHeight } = this.box;
    const first = Math.max(0, Math.floor(scrollTop / this.height) - 4);
    const last = Math.min(this.rows.length, Math.ceil((scrollTop + clientHeight) / this.height) + 4);
    const made = this.rows.slice(first, last).map((row, i) => {
      const e = this.make(row);
      e.setAttribute("role", "row");
      e.setAttribute("aria-rowindex", first + i + 1);
      for (const cell of e.children) cell.setAttribute("role", "cell");
      e.style.transform = `translateY(${(first + i) * this.height}px)`;
      return e;
    });
    if (this.rows.length === 0 && this.none) made.push(element("div", "none", this.none));
    this.box.setAttribute("aria-rowcount", this.rows.length);
    const had = this.box.contains(document.activeElement) ? document.activeElement.dataset.leaf : undefined;
    this.window.replaceChildren(...made);
    if (had !== undefined) [...this.window.querySelectorAll("button")].find((b) => b.dataset.leaf === had)?.focus({ preventScroll: true });
  }
}

// ---- what is known ----

const bindings = new Reading("bindings", "vguid");
const lids = new Reading("lids", "lid");
const closed = new Set(); // leaves
const refusals = { health: "", lists: "" };
let health = null, fabric = null, moves = null, heard = 0, words = [];
let names = new Map(); // of nodes and switches, by port and node GUID

const lacks = (text, wanted) => wanted.filter((word) => !text.includes(word));
const fits = (text) => lacks(text, words).length === 0;

const name = (guid) => (guid === null ? "nowhere" : names.get(guid) || guid);
const named = (sentence) => sentence.replace(/0x[0-9a-f]{16}/g, name);

function tone(state) {
  if (state === "granted" || state === "applied" || state === "bound") return "good";
  return state === "refused" ? "bad" : "wait";
}

// Leaves in the order of their names, and at each its ports as they are plugged in.
function group() {
  const leaves = new Map(), at = new Map(), ports = new Map();
  const leaf = (guid) => {
    if (!leaves.has(guid)) leaves.set(guid, { guid, ports: [], lid: null, name: guid || "Not in the subnet" });
    return leaves.get(guid);
  };
  names = new Map();
  for (const row of lids.rows.values()) {
    if (row.is_switch && row.leaf_guid === row.node_guid) {
      leaf(row.node_guid).lid = row.lid;
      leaf(row.node_guid).name = row.node;
    }
    names.set(row.node_guid, row.node);
    if (row.vguid === null || row.vguid === row.port_guid) names.set(row.port_guid, row.node);
  }
  for (const row of lids.rows.values()) {
    if (bindings.rows.has(row.port_guid) || (row.is_switch && row.leaf_guid === row.node_guid)) continue;
    if (row.vguid !== null && row.vguid !== row.port_guid) continue; // its row is that of the binding
    const port = { row, guests: [], sort: row.is_switch ? `${row.node}\t` : `${name(row.switch_guid)}\t${String(row.switch_port).padStart(3, "0")}` };
    ports.set(row.port_guid, port);
    leaf(row.leaf_guid).ports.push(port);
  }
  for (const row of bindings.rows.values()) {
    let port = ports.get(row.port_guid);
    if (!port) {
      port = { row: { lid: null, node: row.port_guid, port_guid: row.port_guid, leaf_guid: null }, guests: [], sort: row.port_guid };
      ports.set(row.port_guid, port);
      leaf(null).ports.push(port);
    }
    port.guests.push(row);
    at.set(row.vguid, port);
  }
  const order = new Intl.Collator("en", { numeric: true });
  const sorted = [...leaves.values()].sort((a, b) => (a.ports.length === 0) - (b.ports.length === 0) || order.compare(a.name, b.name));
  for (const l of sorted) l.ports.sort((a, b) => order.compare(a.sort, b.sort));
  return { leaves: sorted, at };
}

let grouped = { leaves: [], at: new Map() };

function fabricRows() {
  const rows = [];
  for (const leaf of grouped.leaves) {
    const own = text(leaf.name, leaf.guid, leaf.lid), shown = [];
    let guests = 0;
    for (const port of leaf.ports) {
      const open = lacks(`${own} ${text(port.row.node, port.row.port_guid, port.row.lid)}`, words);
      const found = open.length ? port.guests.filter((b) => lacks(b.text, open).length === 0) : port.guests;
      guests += port.guests.length;
      if (found.length || open.length === 0) shown.push({ port }, ...found.map((binding) => ({ binding })));
    }
    if (shown.length === 0 && !fits(own)) continue;
    rows.push({ leaf, guests });
    if (!closed.has(leaf.guid) || words.length) rows.push(...shown);
  }
  return rows;
}

function fabricRow(row) {
  if (row.leaf) return leafRow(row.leaf, row.guests);
  return row.port ? portRow(row.port) : bindingRow(row.binding);
}

function line(kind, title, nameOf, lid, state, where, mono) {
  const e = element("div", `row ${kind}`, undefined, title);
  e.append(element("span", mono ? "name mono" : "name", nameOf), element("span", "number", lid || ""),
    element("span", state && `pill ${tone(state)}`, state), element("span", "where", where));
  return e;
}

function leafRow(leaf, guests) {
  const hosts = leaf.ports.filter((p) => !p.row.is_switch).length;
  const e = line("leaf", leaf.guid, leaf.name, leaf.lid, "", hosts ? `${many(hosts, "port")}, ${many(guests, "virtual GUID")}` : "no hosts");
  const button = element("button", "name", leaf.name);
  button.type = "button";
  button.dataset.leaf = e.dataset.leaf = leaf.guid;
  button.setAttribute("aria-expanded", !closed.has(leaf.guid));
  e.firstChild.replaceWith(button);
  return e;
}

function portRow({ row, guests }) {
  const place = row.is_switch ? "a switch" : row.switch_guid ? `${name(row.switch_guid)} port ${row.switch_port}` : "";
  return line(`deep1 ${row.is_switch ? "switch" : ""}`, row.port_guid, row.node, row.lid, "",
    [place, guests.length ? many(guests.length, "virtual GUID") : ""].filter(Boolean).join(", "));
}

function bindingRow(b) {
  const title = [`port ${b.port_guid}, index ${b.gid_index}, epoch ${b.epoch}`, ...b.findings].join("\n");
  return line("deep2", title, b.vguid, b.lid, b.state, b.pkeys.length ? b.pkeys.join(" ") : "no P_Keys", true);
}

// ---- moves ----

function smps(move) {
  const kinds = [["LFT", move.smps.lft], ["PortInfo", move.smps.port_info], ["drain", move.smps.drain], ["GUIDInfo", move.smps.guid_info]];
  const sent = kinds.filter(([, n]) => n > 0), sum = sent.reduce((s, [, n]) => s + n, 0);
  if (sum === 0) return "";
  return `${many(sum, "SMP")} (${sent.map(([kind, n]) => `${count(n)} ${kind}`).join(", ")})`;
}

function took(us) {
  return us < 1000 ? `${us} µs` : us < 1e6 ? `${(us / 1000).toFixed(1)} ms` : `${(us / 1e6).toFixed(1)} s`;
}

function way(move) {
  if (move.port_guid === null) return `freed, was at ${name(move.from_port_guid)}`;
  return move.from_port_guid === null ? `to ${name(move.port_guid)}` : `${name(move.from_port_guid)} → ${name(move.port_guid)}`;
}

const clock = (ms) => new Date(ms).toLocaleTimeString("en-GB");

function moveRow(move) {
  const e = element("div", Date.now() - move.time_ms < FRESH_MS ? "row fresh" : "row", undefined,
    `number ${move.number}, ${new Date(move.time_ms).toISOString()}${move.mode ? `, ${move.mode}` : ""}${move.code ? `, ${move.code}` : ""}`);
  const what = element("span");
  if (move.vguid) what.append(element("span", "mono", move.vguid));
  if (move.lid) what.append(`${move.vguid ? "  " : ""}LID ${move.lid}`);
  e.append(element("span", "time", clock(move.time_ms)), what, element("span", `pill ${tone(move.state)}`, move.code || move.state),
    element("span", "way", [way(move), move.duration_us ? took(move.duration_us) : "", smps(move),
      move.missing ? `${count(move.missing)} not acknowledged` : ""].filter(Boolean).join(" · ")));
  return e;
}

function moveRows() {
  return moves === null ? [] : moves.moves.filter((m) => fits(text(m.vguid, m.lid, m.state, m.code, m.from_port_guid, m.port_guid, name(m.from_port_guid), name(m.port_guid))));
}

// ---- what is not in force ----

function host(b) {
  const port = grouped.at.get(b.vguid);
  return port ? port.row.node : b.port_guid;
}

function waitingRows() {
  const rows = [];
  for (const b of bindings.rows.values()) {
    if (b.state === "granted" && b.findings.length === 0) continue;
    if (fits(`${b.text} ${text(host(b), b.port_guid)}`)) rows.push(b);
  }
  return rows.sort((a, b) => (a.state < b.state ? -1 : a.state > b.state ? 1 : a.vguid < b.vguid ? -1 : 1));
}

function waitingRow(b) {
  const e = element("div", "row", undefined, b.findings.join("\n")), what = element("span");
  what.append(element("span", "mono", b.vguid), `  ${host(b)}`);
  e.append(what, element("span", `pill ${b.findings.length ? "wait" : tone(b.state)}`, b.state === "granted" ? "incomplete" : b.state),
    element("span", "finding", named(b.findings.join(" ")) || "The SA does not know the GUID at this port yet."));
  return e;
}

// ---- drawing ----

const lists = {
  fabric: new List($("fabric").querySelector(".list"), 27, fabricRow),
  moves: new List($("moves").querySelector(".list"), 46, moveRow),
  waiting: new List($("waiting").querySelector(".list"), 46, waitingRow),
};

function say(panel, words) {
  $(panel).querySelector(".count").textContent = words;
}

function drawMoves() {
  const rows = moveRows();
  lists.moves.show(rows, moves === null ? "…" : words.length && moves.total ? "None that fits." : "Nothing has moved since OpenSM was started.");
  say("moves", moves && moves.total ? `${count(moves.total)} since OpenSM was started` + (moves.total > moves.moves.length ? `, the last ${moves.moves.length}` : "") : "");
}

let waiting = ""; // how many

function drawWaiting() {
  const rows = waitingRows();
  lists.waiting.show(rows, bindings.whole === 0 ? "…" : words.length ? "None that fits." :
    bindings.rows.size ? "Everything that is bound is in force." : "Nothing is bound.");
  waiting = rows.length ? count(rows.length) : "";
  sayWaiting();
}

const asOf = (whole) => (Date.now() - whole > 5 * EVERY_MS ? `as of ${clock(whole)}` : "");

function sayWaiting() {
  say("waiting", [waiting, bindings.whole && asOf(bindings.whole)].filter(Boolean).join(", "));
}

// Lists wait while OpenSM computes ways, and long ones take many turns.
function sayFabric() {
  const whole = Math.min(bindings.whole, lids.whole);
  if (whole === 0) {
    say("fabric", `reading: ${many(bindings.rows.size, "binding")}, ${many(lids.rows.size, "LID")} so far`);
    return;
  }
  const leaves = many(grouped.leaves.filter((l) => l.ports.length).length, "leaf", "leaves");
  say("fabric", [leaves, asOf(whole)].filter(Boolean).join(", all of it "));
}

function drawFabric() {
  const rows = fabricRows();
  lists.fabric.show(rows, lids.whole === 0 ? "…" : words.length ? "Nothing that fits." :
    health && health.sm_state !== "master" ? "Only the master's plugin knows the subnet." : "The subnet is empty.");
  sayFabric();
  $("fold").textContent = closed.size ? "Open all leaves" : "Close all leaves";
}

function drawLists() {
  grouped = group();
  drawFabric();
  drawWaiting();
  drawMoves();
  drawFigures();
}

function figure(what, value, words) {
  const e = element("div", words);
  e.append(element("dt", "", what, what), element("dd", "", value, value));
  return e;
}

function states() {
  const n = { granted: 0, pending: 0, elsewhere: 0 };
  for (const b of bindings.rows.values()) n[b.state]++;
  return n;
}

function drawFigures() {
  const n = states(), made = [];
  if (health) made.push(figure("Bindings", count(health.bindings)));
  made.push(figure("Granted", count(n.granted)), figure("Pending", count(n.pending), n.pending ? "wait" : ""),
    figure("Elsewhere", count(n.elsewhere), n.elsewhere ? "wait" : ""));
  if (fabric) {
    const m = fabric.moves;
    made.push(figure("Switches", count(fabric.switches)), figure("Ports", count(fabric.ports)));
    if (fabric.dynamic_max) made.push(figure("Dynamic LIDs", `${count(fabric.dynamic_lids)} of ${count(fabric.dynamic_max)}`));
    made.push(figure("LIDs moved", count(m.applied)), figure("Queued", count(m.queued), m.queued ? "wait" : ""),
      figure("Repairing", count(m.repairing), m.repairing ? "bad" : ""));
  }
  if (health) made.push(figure("Free LIDs", count(health.lids_free)));
  $("figures").replaceChildren(...made);
}

function reason(status, reasonText, hint) {
  const e = element("li", { wrong: "bad", warning: "wait" }[status] || "", reasonText);
  if (hint) e.append(element("span", "hint", ` ${hint}`));
  return e;
}

function drawHealth() {
  const silent = heard !== 0 && Date.now() - heard > 3 * EVERY_MS, refusal = refusals.health || refusals.lists;
  const of = refusals.health || !bindings.whole || !lids.whole ? heard : Math.min(bindings.whole, lids.whole);
  const said = (health ? health.reasons : []).map((r) => reason(r.status, `${r.code}: ${r.reason}.`, r.hint));
  if (refusal) said.unshift(reason("wrong", refusal, heard ? `What is shown is of ${clock(of)}.` : ""));
  if (silent && !refusal) said.unshift(reason("warning", `No answer since ${clock(heard)}.`));
  const box = $("reasons"); // is read out when it changes
  if (said.length !== box.children.length || said.some((e, i) => !e.isEqualNode(box.children[i]))) box.replaceChildren(...said);
  document.body.classList.toggle("stale", Boolean(refusal) || silent);
  if (health) {
    const ready = health.status === "ready", lost = refusals.health || silent;
    $("state").textContent = lost ? "no answer" : `${health.sm_state}, ${ready ? "ready" : "not ready"}`;
    $("state").className = `pill ${ready && !lost ? (health.reasons.length ? "wait" : "good") : "bad"}`;
    document.title = `${lost ? "no answer: " : ready ? "" : "not ready: "}vhcasm ${location.host}`;
  }
  if (fabric) $("subnet").textContent = `${fabric.routing_engine}, SM LID ${fabric.sm_lid}, ${many(fabric.sweeps, "heavy sweep")}`;
  if (heard) $("clock").textContent = `as of ${clock(heard)}`;
}

function drawAges() {
  drawHealth();
  sayFabric();
  sayWaiting();
}

// ---- turns ----

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const seen = () => new Promise((done) => {
  if (!document.hidden) done();
  else document.addEventListener("visibilitychange", () => done(seen()), { once: true });
});

// What has moved since the turn before is looked at at once: to read the lists may take many turns.
async function lookAtMoved(before) {
  const moved = moves.moves.filter((m) => m.number > before).slice(0, LOOKS_A_TURN);
  for (const guid of new Set(moved.map((m) => m.vguid).filter(Boolean))) await bindings.look(guid);
  for (const lid of new Set(moved.map((m) => m.lid).filter(Boolean))) await lids.look(lid);
  return moved.length > 0;
}

async function healthTurn() {
  const was = health, now = await ask("/readyz", true, PATIENCE_MS), recent = await ask("/v1/moves", true, PATIENCE_MS);
  health = now.body;
  moves = recent.body;
  heard = Date.now();
  if (!recent.same || moves.moves.some((m) => heard - m.time_ms < FRESH_MS + EVERY_MS)) drawMoves();
  if (!was || was.bindings !== health.bindings || was.lids_free !== health.lids_free) drawFigures();
}

let looked = null;

async function listsTurn() {
  const now = await ask("/v1/fabric", true);
  fabric = now.body;
  const whole = bindings.whole && lids.whole;
  let changed = !whole;
  changed = (await lids.read(drawLists)) || changed;
  changed = (await bindings.read(drawLists)) || changed;
  if (moves && looked !== null && moves.total > looked) changed = (await lookAtMoved(looked)) || changed;
  if (moves) looked = moves.total;
  if (changed) drawLists();
  else if (!now.same) drawFigures();
}

async function every(what, turn) {
  for (;;) {
    await seen();
    try {
      await turn();
      refusals[what] = "";
    } catch (e) {
      refusals[what] = e instanceof Refused ? `${e.message}.` : "The plugin does not answer.";
    }
    drawAges();
    await sleep(EVERY_MS);
  }
}

// ---- by hand ----

function filter() {
  words = $("filter").value.split(/\s+/).map(plain).filter(Boolean);
  drawFabric();
  drawWaiting();
  drawMoves();
}

let pause = 0;
$("filter").addEventListener("input", () => {
  clearTimeout(pause);
  pause = setTimeout(filter, 120);
});

function fold(guid) {
  const key = guid === "null" ? null : guid;
  if (!closed.delete(key)) closed.add(key);
  drawFabric();
}

$("fabric").addEventListener("click", (e) => {
  const row = e.target.closest("[data-leaf]");
  if (row) fold(row.dataset.leaf);
});

$("fold").addEventListener("click", () => {
  const open = closed.size > 0;
  closed.clear();
  if (!open) for (const leaf of grouped.leaves) closed.add(leaf.guid);
  drawFabric();
});

drawMoves();
drawWaiting();
drawFabric();
every("health", healthTurn);
every("lists", listsTurn);
setInterval(() => document.hidden || drawAges(), 1000); // turns that wait for an answer draw nothing
