// Shows /v1/overview. What circuits, folders and submitters call themselves is text here, never markup.
"use strict";
const PERIOD_MS = 2000, ANSWER_MS = 10000;
const $ = id => document.getElementById(id);
const make = (name, text, kind) => {
  const element = document.createElement(name);
  element.textContent = text ?? "";
  if (kind) element.className = kind;
  return element;
};
const bytes = n => {
  for (const unit of ["B", "KiB", "MiB", "GiB"]) {
    if (n < 1024) return `${n.toFixed(n < 10 && unit != "B" ? 1 : 0)} ${unit}`;
    n /= 1024;
  }
  return `${n.toFixed(1)} TiB`;
};
const seconds = ms => ms < 10000 ? `${(ms / 1e3).toFixed(2)} s` : ms < 600000 ? `${(ms / 1e3).toFixed(0)} s` : `${(ms / 6e4).toFixed(0)} min`;
const when = ms => ms ? new Date(ms).toLocaleTimeString() : "";
let token = "", last = null;

// Rows of [text, class, element] cells; on a phone each row is a card whose cells carry their heads.
function table(id, heads, rows, empty) {
  const table = $(id), body = document.createElement("tbody");
  table.replaceChildren();
  if (!rows.length) return void table.append(make("caption", empty));
  const head = body.insertRow();
  head.className = "heads";
  heads.forEach(name => head.append(make("th", name)));
  for (const cells of rows) {
    const row = body.insertRow();
    cells.forEach(([text, kind, inner], index) => {
      const cell = make("td", inner ? "" : text, kind);
      if (inner && text) cell.append(make(inner, text));
      cell.dataset.name = heads[index];
      row.append(cell);
    });
  }
  table.append(body);
}

function tile(box, name, value, kind, used, limit) {
  const element = make("div", "", "tile");
  element.append(make("span", name), make("b", value, kind));
  if (limit) {
    const meter = document.createElement("meter");
    meter.max = limit, meter.value = used;
    element.append(meter);
  }
  $(box).append(element);
}

const shape = (name, attributes, text) => {
  const element = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const key in attributes) element.setAttribute(key, attributes[key]);
  if (text) element.textContent = text;
  return element;
};

// Every slot has a lane, whether it works or not; guests and checks have one as soon as they did something.
function waterfall({ spans, tracks, engine_ns: now }) {
  const length = Number($("window").value) * 1e9, from = now - length;
  const shown = spans.filter(span => span.end > from);
  const others = shown.map(span => span.track).sort((a, b) => a.localeCompare(b, "en", { numeric: true }));
  const lanes = [...new Set([...tracks, ...others])];
  const width = Math.max(280, $("waterfall").clientWidth - 14), label = Math.min(130, width * .27), row = 19;
  const x = time => label + Math.max(0, (time - from) / length) * (width - label);
  const height = lanes.length * row + 18, svg = shape("svg", { width, height, role: "img", "aria-label": "what each slot and guest did" });
  const ticks = width > 600 ? 6 : 3;
  for (let tick = 0; tick <= ticks; tick++) {
    const at = label + tick / ticks * (width - label), ago = length / 1e9 * (1 - tick / ticks);
    const anchor = tick == 0 ? "start" : tick == ticks ? "end" : "middle";
    svg.append(shape("line", { x1: at, x2: at, y1: 0, y2: height - 14, class: "tick" }));
    svg.append(shape("text", { x: at, y: height - 2, "text-anchor": anchor }, ago ? `−${ago < 120 ? `${+ago.toFixed(1)} s` : `${+(ago / 60).toFixed(1)} min`}` : "now"));
  }
  lanes.forEach((lane, index) => {
    svg.append(shape("text", { x: 0, y: index * row + 13 }, lane));
    svg.append(shape("rect", { x: label, y: index * row + 2, width: width - label, height: row - 4, class: "lane" }));
  });
  for (const span of shown) {
    const bar = { x: x(span.start), y: lanes.indexOf(span.track) * row + 2, width: Math.max(1, x(span.end) - x(span.start)), height: row - 4 };
    const rect = shape("rect", { ...bar, rx: 1, class: `k-${span.kind.replaceAll(" ", "-")}` });
    rect.append(shape("title", {}, `${span.name}, ${((span.end - span.start) / 1e6).toFixed(1)} ms`));
    svg.append(rect);
  }
  $("waterfall").replaceChildren(svg);
  const kinds = ["synthesis", "key load", "copy", "proving", "verification", "queue, release"];
  $("legend").replaceChildren(...kinds.map(kind => make("span", kind, `k-${kind.replaceAll(" ", "-")}`)));
}

function progress(job) {
  if (job.ended_ms) return seconds(job.ended_ms - job.submitted_ms);
  const states = Object.entries(Object.groupBy(job.partitions ?? [], state => state));
  return states.map(([state, of]) => `${of.length} ${state}`).join(", ");
}

function show(overview) {
  const { health, circuits, jobs, failures, budget, counters } = last = overview;
  $("state").textContent = health.ready ? "takes jobs" : health.reason;
  $("state").className = health.ready ? "good" : "bad";
  $("version").textContent = `version ${overview.version.zkhost}`;
  $("clock").textContent = when(overview.now_ms);
  ["tiles", "budget"].forEach(id => $(id).replaceChildren());
  tile("tiles", "queued", health.queued);
  tile("tiles", "running", health.running);
  tile("tiles", "circuits", health.circuits);
  tile("tiles", "refused circuits", Object.keys(circuits.refused).length, Object.keys(circuits.refused).length ? "bad" : "");
  tile("tiles", "proofs retried", counters.retries, counters.retries ? "bad" : "");
  tile("tiles", "devices lost", counters.device_losses, counters.device_losses ? "bad" : "");
  budget.forEach(({ name, used, limit }) => tile("budget", name, `${bytes(used)} of ${bytes(limit)}`, "", used, limit));
  waterfall(overview);
  const full = ({ name, key }) => key ? `${name}:${key}` : name;
  const name = digest => { const found = circuits.circuits.find(circuit => circuit.digest == digest); return found ? full(found) : digest.slice(0, 12) };
  const state = job => [job.waits_for ? `${job.state}: ${job.waits_for}` : job.state, job.state];
  table("jobs", ["job", "state", "circuit", "priority", "owner", "accepted", "took"], jobs.map(job =>
    [[job.id, "", "code"], state(job), [name(job.circuit)], [job.priority], [job.owner], [when(job.submitted_ms)], [progress(job)]]), "no jobs yet");
  table("failures", ["job", "ended", "circuit", "code", "why"], failures.map(job =>
    [[job.id.slice(0, 12), "", "code"], [when(job.ended_ms)], [name(job.circuit)], [job.failure.code, "bad"], [job.failure.message]]), "no job that is remembered has failed");
  const refused = Object.entries(circuits.refused).map(([folder, why]) => [[folder], ["refused", "bad"], [], [why]]);
  const key = circuit => `${bytes(circuit.key_bytes)}${circuit.resident ? ", in memory" : ""}${circuit.proven ? "" : ", not seen to prove yet"}`;
  table("circuits", ["circuit", "digest", "key", "what"], circuits.circuits.map(circuit =>
    [[`${full(circuit)} ${circuit.version}${circuit.pinned ? " (pinned)" : ""}`], [circuit.digest.slice(0, 12), "", "code"], [key(circuit)],
      [`${circuit.kind}, ${circuit.constraints.toLocaleString()} constraints, ${circuit.partitions} partition${circuit.partitions == 1 ? "" : "s"}`]]).concat(refused), "none is loaded");
}

async function refresh() {
  const trouble = text => { $("state").textContent = text; $("state").className = "bad"; document.body.className = last ? "stale" : "" };
  try {
    const headers = token ? { Authorization: `Bearer ${token}` } : {};
    const answer = await fetch("/v1/overview", { headers, signal: AbortSignal.timeout(ANSWER_MS) });
    const asks = answer.status == 401 || answer.status == 403;
    $("ask").hidden = !asks;
    if (!answer.ok) return trouble(asks ? "a token is needed" : (await answer.json()).detail);
    document.body.className = "";
    show(await answer.json());
  } catch (error) {
    // What is thrown by the page itself is a mistake in it, and shows in the browser's console.
    if (error instanceof TypeError && error.message.includes("fetch") || error.name == "TimeoutError") return trouble("no answer");
    trouble("this page has a fault");
    throw error;
  }
}

async function watch() {
  for (;;) {
    if (!document.hidden) await refresh().catch(error => console.error(error));
    await new Promise(resolve => setTimeout(resolve, PERIOD_MS));
  }
}

$("ask").addEventListener("submit", event => { event.preventDefault(); token = $("token").value; refresh() });
$("window").addEventListener("change", () => last && waterfall(last));
window.addEventListener("resize", () => last && waterfall(last));
watch();
