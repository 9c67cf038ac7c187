// The page of a trace. The tables (tables.py) say everything; here one step of the way is drawn at a time.
//
// A step is a hop that is entered, or left: a trace of n hops has 2n steps. `steps[i]` is the hop, or ~hop when it is left.
// Nothing is made before it is looked at: the list holds the rows in sight, the diagram the calls that are under way.
"use strict";

const T = JSON.parse(document.getElementById("tables").textContent);
const H = T.hops, N = H.parent.length;
const $ = (id) => document.getElementById(id);

// --- The trace as arrays ---------------------------------------------------------------------------------------------

const depth = new Int32Array(N), end = new Int32Array(N); // end[h]: one after the last hop below h
for (let h = 0; h < N; h++) depth[h] = H.parent[h] < 0 ? 0 : depth[H.parent[h]] + 1;
for (let h = N - 1; h >= 0; h--) {
  end[h] = Math.max(end[h], h + 1);
  if (H.parent[h] >= 0) end[H.parent[h]] = Math.max(end[H.parent[h]], end[h]);
}
const steps = new Int32Array(2 * N), entering = new Int32Array(N), leaving = new Int32Array(N);
{
  let at = 0;
  const open = [];
  const close = () => { const h = open.pop(); leaving[h] = at; steps[at++] = ~h; };
  for (let h = 0; h < N; h++) {
    while (open.length && end[open[open.length - 1]] <= h) close();
    entering[h] = at; steps[at++] = h;
    open.push(h);
  }
  while (open.length) close();
}
const opOf = (h) => T.texts[H.op[h]], keyOf = (h) => T.texts[H.key[h]], kernelOf = (h) => T.kernels[H.kernel[h]];
const isHandler = (h) => kernelOf(h).handler;
const beginsColumn = (h) => H.parent[h] < 0 || H.call[h] >= 0 || H.op[h] !== H.op[H.parent[h]];
const short = (name) => name.replace(/^aten\./, "").replace(/\.default$/, "");

// --- What keys are ----------------------------------------------------------------------------------------------------

const ABOVE = "functions"; // the row for what happens before any key
const rank = new Map(T.order.map((key, i) => [key.name, i]));

function functionalityOf(key) {
  if (key.startsWith("__torch_function")) return ABOVE;
  if (key.startsWith("__torch_dispatch")) return "Python";
  return T.functionalities[key] ?? key;
}
const order = (key) => { const f = functionalityOf(key); return f === ABOVE ? -1 : rank.get(f) ?? 999; };

const MEANING = [
  [/^functions$/, "modes and subclasses for functions", "#8250df"],
  [/^FuncTorch|^Batched|^Vmap/, "function transforms: grad, vmap", "#b5338a"],
  [/^PythonTLSSnapshot$/, "keeps the caller's state", "#6b7785"],
  [/^Autocast/, "chooses the dtype", "#b65c02"],
  [/^Autograd/, "records for gradients", "#c2323f"],
  [/^ADInplaceOrView$/, "counts writes, ties views", "#9a7200"],
  [/^(Conjugate|Negative|ZeroTensor)$/, "settles lazy elements", "#7a6a1a"],
  [/^Functionalize$/, "takes writes out", "#0b7285"],
  [/^Python/, "modes and subclasses", "#1a7f4b"],
  [/^BackendSelect$/, "finds the device", "#4b6584"],
  [/^(Dense|Quantized|Sparse|SparseCsr|NestedTensor)$/, "computes", "#1769aa"],
];
const meaning = (key) => MEANING.find(([pattern]) => pattern.test(functionalityOf(key))) ?? [null, "", "#5b6b8c"];
const hue = (key) => `--hue:${meaning(key)[2]}`;

const WHY = {
  kernel: "it is registered for this operator at this key",
  "backend fallback": "the operator has nothing of its own here, and this layer serves all operators",
  "default backend kernel": "one kernel serves all backends (CompositeExplicitAutograd)",
  "math kernel": "the operator is written in other operators (CompositeImplicitAutograd)",
  "autograd kernel": "it is registered for all autograd keys",
  "batched kernel": "it is registered as the batching decomposition",
  "nested kernel": "it is registered for nested tensors",
  missing: "nothing is registered here",
};

// --- Making elements --------------------------------------------------------------------------------------------------

function element(kind, cls, text, style) {
  const made = document.createElement(kind);
  if (cls) made.className = cls;
  if (text !== undefined) made.textContent = text;
  if (style) made.style.cssText = style;
  return made;
}
function fill(parent, ...children) { parent.replaceChildren(...children); return parent; }
const duration = (ns) => ns >= 1e6 ? `${(ns / 1e6).toFixed(1)} ms` : `${Math.max(1, Math.round(ns / 1e3))} µs`;
const inputsOf = (h) => T.lists[H.inputs[h]].map((v) => T.values[v]);
const textOf = (value) => value.tensors.length === 1 && T.tensors[value.tensors[0]].summary === value.text
  ? `${value.text} #${T.tensors[value.tensors[0]].number}` : value.text;
const loadOf = (h) => inputsOf(h).filter((v) => v.tensors.length).map(textOf).join(", ") || inputsOf(h).map((v) => v.text).join(", ");
const outcomeOf = (h) => H.error[h] >= 0 ? T.texts[H.error[h]] : H.output[h] >= 0 ? textOf(T.values[H.output[h]]) : "nothing";

// --- The list of hops -------------------------------------------------------------------------------------------------

const ROW = 22;
const folded = new Uint8Array(N); // 1: what is below is not shown
if (N > 400) for (let h = 0; h < N; h++) folded[h] = depth[h] >= 1 || end[h] - h > 60 ? 1 : 0;
let rows = new Int32Array(0), found = null;

function listRows() {
  if (found) { rows = found; return; }
  const list = new Int32Array(N);
  let count = 0;
  for (let h = 0; h < N; h = folded[h] ? end[h] : h + 1) list[count++] = h;
  rows = list.subarray(0, count);
}

function drawRows() {
  const view = $("rows"), from = Math.max(0, Math.floor(view.scrollTop / ROW) - 8);
  const to = Math.min(rows.length, Math.ceil((view.scrollTop + view.clientHeight) / ROW) + 8);
  $("space").style.height = `${rows.length * ROW}px`;
  const drawn = [];
  for (let i = from; i < to; i++) drawn.push(row(rows[i], i));
  $("space").replaceChildren(...drawn);
}

function row(h, i) {
  const line = element("div", "row", undefined, `top:${i * ROW}px;padding-left:${3 + (found ? 0 : Math.min(depth[h], 24)) * 6}px`);
  line.dataset.hop = h;
  if (h === current()) line.classList.add("now");
  if (h === current() && isLeaving()) line.classList.add("leaving");
  if (H.error[h] >= 0) line.classList.add("failed");
  if (H.backward[h]) { line.classList.add("backward"); line.title = "called by backward()"; }
  line.append(element("span", "fold", end[h] > h + 1 && !found ? (folded[h] ? "▸" : "▾") : ""));
  if (beginsColumn(h) || found) {
    line.classList.add("begins");
    line.append(element("span", "name", short(opOf(h))));
  }
  line.append(element("span", "key", isHandler(h) ? kernelOf(h).name : keyOf(h), hue(keyOf(h))));
  if (!beginsColumn(h)) line.append(element("span", "who", isHandler(h) ? "handles it" : kernelOf(h).name));
  line.append(element("span", "time", duration(H.time[h])));
  return line;
}

function showInList(h) {
  let changed = false;
  for (let a = H.parent[h]; a >= 0; a = H.parent[a]) if (folded[a]) { folded[a] = 0; changed = true; }
  if (changed && !found) listRows();
  let low = 0, high = rows.length - 1; // rows are in the order of their numbers
  while (low < high) { const middle = (low + high) >> 1; if (rows[middle] < h) low = middle + 1; else high = middle; }
  const view = $("rows"), top = low * ROW;
  if (top < view.scrollTop + ROW) view.scrollTop = Math.max(0, top - 3 * ROW);
  else if (top > view.scrollTop + view.clientHeight - 2 * ROW) view.scrollTop = top - view.clientHeight + 4 * ROW;
  drawRows();
}

function search(words) {
  words = words.trim().toLowerCase();
  if (!words) found = null;
  else {
    const hits = T.texts.map((text) => text.length < 200 && text.toLowerCase().includes(words));
    const kernels = T.kernels.map((kernel) => kernel.name.toLowerCase().includes(words));
    const list = [];
    for (let h = 0; h < N; h++) if (hits[H.op[h]] || hits[H.key[h]] || kernels[H.kernel[h]]) list.push(h);
    found = Int32Array.from(list);
  }
  listRows();
  $("rows").scrollTop = 0;
  drawRows();
}

// --- The diagram: a column for each call under way, a row for each key ------------------------------------------------

const AXIS = 150, WIDE = 178, GAP = 34, HEAD = 44, TOP = 12, LINE = 16, PAD = 6;

function columnsOf(h) {
  const chain = [];
  for (let a = h; a >= 0; a = H.parent[a]) chain.push(a);
  chain.reverse();
  const columns = [];
  for (const a of chain) {
    if (beginsColumn(a)) columns.push({ first: a, hops: [] });
    columns[columns.length - 1].hops.push(a);
  }
  const last = columns[columns.length - 1];
  last.done = []; // what this call has already come to below, when it is left
  if (isLeaving()) for (let a = lastOfColumn(h); a >= 0; a = lastOfColumn(a)) last.done.push(a);
  return columns;
}
function childrenOf(h) {
  const list = [];
  for (let c = h + 1; c < end[h] && list.length < 64; c = end[c]) list.push(c);
  return list;
}
const lastOfColumn = (h) => childrenOf(h).filter((c) => !beginsColumn(c)).pop() ?? -1;

function drawDiagram() {
  const view = $("diagram"), h = current(), all = columnsOf(h), room = view.clientWidth - AXIS - 4;
  const most = Math.max(1, Math.min(all.length, Math.floor(room / (WIDE + GAP)))); // as many calls as there is room for
  const columns = all.slice(-most), hidden = all.slice(0, -most);
  const WIDTH = Math.min(250, Math.max(WIDE, Math.floor(room / most) - GAP));
  const canvas = $("canvas"), svg = document.createElementNS("http://www.w3.org/2000/svg", "svg"), parts = [];
  const boxes = columns.map((column, c) => boxesOf(column, h, columns[c + 1]));
  const keys = [...new Set(boxes.flat().map((box) => functionalityOf(box.key)))].sort((a, b) => order(a) - order(b));
  // 1. Heights: a row is as high as the boxes that one call has in it.
  let y = TOP + HEAD + 16;
  const tops = new Map();
  for (const key of keys) {
    const height = Math.max(...boxes.map((list) => list.filter((box) => functionalityOf(box.key) === key)
      .reduce((sum, box) => sum + box.height + PAD, 0)), 38) + PAD;
    tops.set(key, y);
    const name = boxes.flat().find((box) => functionalityOf(box.key) === key).key;
    const lane = element("div", `lane${tops.size % 2 ? " odd" : ""}`, undefined, `top:${y}px;height:${height}px;right:0`);
    const axis = element("div", "axis", key === ABOVE ? "before any key" : name.replace(/^__torch_dispatch__$/, "Python"), `top:${y + 5}px;${hue(name)}`);
    axis.append(element("small", "", meaning(name)[1]));
    parts.push(lane, axis);
    y += height;
  }
  // 2. Columns, from the outermost call to the innermost.
  let from = null;
  columns.forEach((column, c) => {
    const x = AXIS + c * (WIDTH + GAP), rail = x + 9, innermost = c === columns.length - 1;
    const head = element("div", "head", undefined, `left:${x}px;top:${TOP}px;width:${WIDTH}px;height:${HEAD}px`);
    head.append(element("b", "", short(opOf(column.first))), element("small", "", loadOf(column.first)));
    head.title = H.call[column.first] >= 0 ? T.calls[H.call[column.first]].schema : opOf(column.first);
    parts.push(head);
    if (hidden.length && c === 0) {
      const inside = element("div", "skip", `inside ${hidden.map((one) => short(opOf(one.first))).join(" → ")}`, `left:0;top:${TOP}px;width:${AXIS - 8}px;height:${HEAD}px`);
      inside.title = inside.textContent;
      parts.push(inside);
    }
    let last = TOP + HEAD;
    const used = new Map();
    for (const box of boxes[c]) {
      const key = functionalityOf(box.key), top = tops.get(key) + PAD + (used.get(key) ?? 0), middle = top + box.height / 2;
      used.set(key, (used.get(key) ?? 0) + box.height + PAD);
      const gone = box.kind === "stop" || box.kind === "done" || (box.kind === "skip" && box.passed);
      line(svg, `M${rail},${last} V${middle}`, `rail ${gone ? (innermost && isLeaving() && box.after ? "returned" : "gone") : ""}`);
      dot(svg, rail, middle, box.kind === "skip" ? "passed" : gone ? (box.kind === "done" || (box.now && isLeaving()) ? "returned" : "") : "later", box.kind === "skip" ? 3.5 : 6);
      parts.push(drawBox(box, x + 24, top));
      last = middle;
    }
    if (from) {
      const bend = x - GAP / 2, to = TOP + HEAD / 2;
      line(svg, `M${from.x},${from.y} C${bend},${from.y} ${bend},${to} ${x - 7},${to}`, "into");
      tip(svg, x - 1, to);
    }
    const leads = boxes[c].filter((box) => box.kind === "stop").pop();
    const topOf = leads && leads.at;
    from = topOf ? { x: x + WIDTH, y: topOf } : null;
  });
  const width = AXIS + columns.length * (WIDTH + GAP);
  canvas.style.cssText = `min-width:100%;width:${Math.min(width, view.clientWidth)}px;height:${y + 8}px`;
  fill(canvas, ...parts.slice(0, 2 * keys.length), svg, ...parts.slice(2 * keys.length));
  const now = canvas.querySelector(".now");
  if (now) now.scrollIntoView({ block: "nearest", inline: "nearest" });

  function drawBox(box, left, top) {
    box.at = top + box.height / 2;
    const cls = box.kind === "skip" ? "skip" : box.kind === "later" ? "ghost" : `box${box.kind === "done" ? " done" : ""}`;
    const made = element("div", cls, undefined, `left:${left}px;top:${top}px;width:${WIDTH - 24}px;height:${box.height}px;${hue(box.key)}`);
    if (box.kind === "skip") made.textContent = "nothing to do here";
    else made.append(element("b", "", box.who));
    if (box.kind === "later") made.title = `${box.who} would answer here`;
    if (box.hop !== undefined) {
      made.dataset.hop = box.hop;
      made.title = `${box.who}, ${kernelOf(box.hop).place}`;
      if (box.note) made.append(element("small", "", box.note));
      if (box.now) {
        made.classList.add("now");
        if (isLeaving()) made.classList.add(H.error[box.hop] >= 0 ? "failed" : "leaving");
        made.append(element("small", "load", isLeaving() ? `↑ ${outcomeOf(box.hop)}` : `↓ ${loadOf(box.hop)}`));
      }
    }
    return made;
  }
}

// The boxes of one call from above: where it stopped, what it passed, and who would answer further down.
function boxesOf(column, h, inner) {
  const call = H.call[column.first] >= 0 ? T.calls[H.call[column.first]] : null, boxes = [];
  const stops = [...column.hops.map((hop) => ({ hop, kind: "stop" })), ...(column.done ?? []).map((hop) => ({ hop, kind: "done" }))];
  for (const { hop, kind } of stops) {
    const kernel = kernelOf(hop), now = hop === h, note = calledBy(hop, inner);
    boxes.push({
      hop, kind, key: keyOf(hop), now, note, after: kind === "done",
      who: isHandler(hop) ? `${kernel.name}.${keyOf(hop)}` : kernel.name, height: 12 + LINE * (1 + (note ? 1 : 0) + (now ? 1 : 0)),
    });
  }
  const reached = Math.max(...stops.map(({ hop }) => order(keyOf(hop))), -1);
  for (const each of call ? call.rows : []) {
    const at = order(each.key);
    if (stops.some(({ hop }) => functionalityOf(keyOf(hop)) === functionalityOf(each.key))) continue;
    if (each.skipped) boxes.push({ kind: "skip", key: each.key, passed: at < reached, height: LINE + 8 });
    else if (at > reached && !column.done?.length) boxes.push({ kind: "later", key: each.key, who: each.who, height: LINE + 12 });
  }
  return boxes.sort((a, b) => order(a.key) - order(b.key)); // stable: a handler stays below the layer that asks it
}

// Which other calls a kernel has made so far, in short.
function calledBy(hop, inner) {
  const names = [];
  for (const c of childrenOf(hop)) {
    if (!beginsColumn(c)) continue;
    const before = leaving[c] <= step, now = inner && inner.first === c;
    if (before || now) names.push(`${short(opOf(c))} ${now ? "→" : "✓"}`);
  }
  return names.length ? `calls ${names.length > 3 ? `… ${names.slice(-3).join(", ")}` : names.join(", ")}` : "";
}

function line(svg, path, cls) {
  const made = document.createElementNS(svg.namespaceURI, "path");
  made.setAttribute("d", path); made.setAttribute("class", cls); svg.append(made);
}
function dot(svg, x, y, cls, r) {
  const made = document.createElementNS(svg.namespaceURI, "circle");
  made.setAttribute("cx", x); made.setAttribute("cy", y); made.setAttribute("r", r); made.setAttribute("class", `stop ${cls}`); svg.append(made);
}
function tip(svg, x, y) {
  const made = document.createElementNS(svg.namespaceURI, "path");
  made.setAttribute("d", `M${x},${y} l-9,-5 v10 z`); made.setAttribute("class", "tip"); svg.append(made);
}

// --- The sentence, the facts and the sources -------------------------------------------------------------------------

function drawSentence() {
  const h = current(), kernel = kernelOf(h), key = keyOf(h), said = [];
  const bold = (text) => element("b", "", text), plain = (text) => document.createTextNode(text);
  const mark = () => element("span", "key", key, hue(key));
  const who = isHandler(h) ? `${kernel.name}.${key}` : kernel.name;
  if (isLeaving()) {
    const above = H.parent[h];
    const back = above < 0 ? "the program" : kernelOf(above).name;
    if (H.error[h] >= 0) said.push(bold(who), plain(" raises "), bold(T.texts[H.error[h]]));
    else said.push(bold(who), plain(" is done and gives "), bold(outcomeOf(h)), plain(" back to "), bold(back));
    said.push(plain(`, after ${duration(H.time[h])}.`));
    if (H.time[h] > 1e6 && firstOfKernel[H.kernel[h]] === h) said.push(element("span", "why", " It is the first call of this kernel here: that loads or compiles its loops, which later calls find ready."));
  } else if (isHandler(h)) {
    said.push(bold(kernel.name), plain(functionalityOf(key) === ABOVE ? " is asked before the dispatcher: " : " is asked: "),
      bold(key), plain(" gets "), bold(short(opOf(h))), plain(" and may do with it what it likes. "));
  } else {
    said.push(bold(short(opOf(h))), plain(beginsColumn(h) ? " begins, and stops at " : " goes on down, and stops at "), mark(),
      plain(". There "), bold(kernel.name), plain(" answers: "), plain(`${WHY[kernel.rule] ?? kernel.rule}. `));
    if (kernel.about) said.push(element("span", "why", kernel.about));
  }
  if (H.backward[h]) said.push(element("span", "why", " Called by backward()."));
  fill($("sentence"), ...said);
}

// The user's own text, with the line from which this was called.
const firstOfKernel = {};
for (let h = N - 1; h >= 0; h--) firstOfKernel[H.kernel[h]] = h;

function drawProgram() {
  const title = $("program").querySelector("h2"), pre = $("program").querySelector("pre");
  let first = current();
  while (H.parent[first] >= 0) first = H.parent[first];
  const [place] = (T.lines[H.at[first]] || "").split("\t"), cut = place.lastIndexOf(":");
  const file = place.slice(0, cut), now = +place.slice(cut + 1), text = T.program[file];
  fill(title, element("b", "", "The program"), ` ${place}${H.backward[first] ? ", in backward()" : ""}`);
  if (text) drawCode(pre, text, 1, (n) => n === now ? "at" : "");
  else noCode(pre, "the source of what called this is not known");
}

function drawValues() {
  const h = current(), table = element("table");
  const put = (name, value, cls) => {
    const tr = element("tr", cls), td = element("td");
    for (const t of value.tensors) {
      const tensor = T.tensors[t];
      const badge = element("span", "id", `#${tensor.number}`);
      badge.title = "the same number is the same tensor";
      td.append(badge, element("span", "", tensor.summary));
      const look = tensor.look.filter(([k]) => k !== "shape" && k !== "dtype").map(([k, v]) => `${k} ${v}`).join(" · ");
      td.append(element("small", "", `${look}${look ? " · " : ""}${`keys ${T.keysets[tensor.keys].spoken}`}`));
    }
    if (!value.tensors.length) td.textContent = value.text;
    tr.append(element("td", "", name), td);
    table.append(tr);
  };
  const plain = (value) => !value.tensors.length && ["None", "False"].includes(value.text); // said in one line, at the end
  inputsOf(h).forEach((value, i) => { if (!plain(value)) put(value.name || `${i}`, value, ""); });
  const rest = inputsOf(h).filter(plain).map((value) => `${value.name} ${value.text}`).join(", ");
  if (rest) put("", { text: rest, tensors: [] }, "rest");
  if (isLeaving() && H.error[h] >= 0) put("raises", { text: T.texts[H.error[h]], tensors: [] }, "error");
  else if (isLeaving() && H.output[h] >= 0) put("result", T.values[H.output[h]], "result");
  fill($("values"), table);
}

function drawKeyset() {
  const h = current();
  let first = h;
  while (!beginsColumn(first)) first = H.parent[first];
  let own = h; // a handler has no keyset: that of the layer which asks
  while (own >= 0 && isHandler(own) && !beginsColumn(own)) own = H.parent[own];
  const begun = T.keysets[H.keyset[first]], now = T.keysets[H.keyset[own]];
  const has = new Set(now.keys.map(([name]) => name)), had = new Map(begun.keys);
  const here = functionalityOf(keyOf(own));
  $("hex").textContent = now.keys.length ? now.hex : "";
  let apart = false;
  fill($("strip"), ...T.order.map((key) => {
    const bit = element("span", `bit${has.has(key.name) ? " set" : had.has(key.name) ? " gone" : ""}`, undefined, hue(key.name));
    if (key.kind === "backend" && !apart) { bit.classList.add("apart"); apart = true; }
    bit.title = key.name + (had.has(key.name) ? `, bit ${had.get(key.name)}` : "");
    return bit;
  }));
  fill($("keys"), ...begun.keys.map(([name, bit]) => {
    const chip = element("span", `chip${!has.has(name) ? " gone" : name === here ? " now" : ""}`, undefined, hue(name));
    chip.append(element("small", "", bit), name);
    chip.title = !has.has(name) ? "taken off on the way" : name === here ? "where the call is" : meaning(name)[1];
    return chip;
  }));
  if (!begun.keys.length) fill($("keys"), element("span", "none", "none: this happens before the dispatcher"));
}

function drawState() {
  const state = T.states[H.state[current()]], parts = [];
  const stack = (title, names, key) => {
    if (!names.length) return;
    const part = element("div");
    part.append(element("h3", "", title));
    [...names].reverse().forEach((name, i) => part.append(element("div", `mode${i ? "" : " top"}`, name, hue(key))));
    parts.push(part);
  };
  const fact = (title, text) => { const part = element("div"); part.append(element("h3", "", title), element("div", "", text)); parts.push(part); };
  stack("modes, the next on top", state.modes, "Python");
  stack("function modes", state.function_modes, "__torch_function__");
  stack("transforms", state.transforms, "FuncTorch");
  if (state.autocast.length) fact("autocast", state.autocast.join(", ").replace("torch.", ""));
  fact("gradients", state.inference ? "inference mode" : state.grad_enabled ? "recorded" : "not recorded");
  const away = state.excluded.filter((name) => !name.startsWith("Autocast"));
  if (away.length) fact("keys switched off", away.length > 6 ? `${away.length}: all above ${away[away.length - 1]}` : away.join(", "));
  fill($("state"), ...parts);
}

const TOKENS = /(#.*)|("""[\s\S]*?"""|'''[\s\S]*?'''|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*')|\b(def|class|return|if|elif|else|for|while|in|not|and|or|is|with|as|try|except|finally|raise|from|import|lambda|yield|pass|None|True|False|await|async|assert|del|global|nonlocal|break|continue)\b|\b(\d[\w.]*)\b/g;

function highlighted(text) {
  const whole = document.createDocumentFragment();
  let last = 0;
  for (const token of text.matchAll(TOKENS)) {
    whole.append(text.slice(last, token.index));
    whole.append(element("span", token[1] ? "c" : token[2] ? "s" : token[3] ? "w" : "n", token[0]));
    last = token.index + token[0].length;
  }
  whole.append(text.slice(last));
  return whole;
}

function drawCode(pre, text, first, classes) {
  if (pre.drawn !== text) writeCode(pre, text, first); // a step often stays in one source
  for (const [i, one] of [...pre.children].entries()) one.className = classes(first + i, i);
  const at = pre.querySelector(".at") ?? pre.querySelector(".mine");
  pre.scrollTop = at ? Math.max(0, at.offsetTop - pre.offsetTop - pre.clientHeight / 3) : 0;
}

function writeCode(pre, text, first) {
  // Docstrings run over lines, so they are coloured before the lines are parted.
  const lines = [element("div")];
  for (const node of highlighted(text.replace(/\n$/, "")).childNodes) {
    node.textContent.split("\n").forEach((piece, i) => {
      if (i) lines.push(element("div"));
      lines[lines.length - 1].append(node.nodeType === 1 ? element("span", node.className, piece) : piece);
    });
  }
  lines.forEach((one, i) => { one.dataset.n = first + i; });
  fill(pre, ...lines);
  pre.drawn = text;
}
function noCode(pre, words) { fill(pre, element("div", "none", words)); pre.drawn = null; }

function drawSources() {
  const h = current(), kernel = kernelOf(h), title = $("source").querySelector("h2"), pre = $("source").querySelector("pre");
  const [place, text] = (T.lines[H.at[h]] || "\t").split("\t");
  const source = T.sources[kernel.source];
  fill(title, element("b", "", isHandler(h) ? `${kernel.name}.${keyOf(h)}` : kernel.name), ` ${source ? source.file : kernel.place}`);
  if (place) title.append(`  ·  called at ${place}`);
  title.title = text ? `${place}: ${text}` : "";
  // The line that has just been at work: that of the last call from here which is under way or done.
  const calls = childrenOf(h).filter((c) => leaving[c] <= step).map((c) => T.lines[H.at[c]].split("\t")[0]);
  const at = calls.length ? calls[calls.length - 1] : "";
  if (source && source.text) drawCode(pre, source.text, source.first, (n) => at === `${source.file}:${n}` ? "at" : "");
  else noCode(pre, "no Python source: a built-in, or a function made at run time");

  let first = h;
  while (first >= 0 && H.call[first] < 0) first = H.parent[first];
  const special = $("special").querySelector("h2"), code = $("special").querySelector("pre");
  if (first < 0) { fill(special, "Before the dispatcher: no code is made for this"); noCode(code, ""); return; }
  const call = T.calls[H.call[first]];
  fill(special, element("b", "", "What runs when nobody looks"), ` the specialised code of ${short(call.op)}`);
  const key = isHandler(h) ? "Python" : keyOf(h);
  let mine = false; // each layer's part begins with a comment: `# AutogradCPU: ...`
  const parts = T.texts[call.code].split("\n").map((one) => {
    const begins = one.match(/^\s*# (\w+): /);
    if (begins) mine = begins[1] === key;
    return mine;
  });
  drawCode(code, T.texts[call.code], 1, (n, i) => parts[i] ? "mine" : "");
}

// --- Stepping --------------------------------------------------------------------------------------------------------

let step = 0, playing = null;
const current = () => steps[step] < 0 ? ~steps[step] : steps[step];
const isLeaving = () => steps[step] < 0;

function go(to, keepHash) {
  step = Math.max(0, Math.min(steps.length - 1, to));
  $("slider").value = step;
  $("position").textContent = `step ${(step + 1).toLocaleString()} of ${steps.length.toLocaleString()}`;
  if (!keepHash) history.replaceState(null, "", `#${step + 1}`);
  showInList(current());
  drawSentence(); drawDiagram(); drawValues(); drawKeyset(); drawState(); drawProgram(); drawSources();
}
const over = () => go(isLeaving() ? step + 1 : leaving[current()]);
const out = () => go(isLeaving() ? entering[current()] : H.parent[current()] >= 0 ? entering[H.parent[current()]] : 0);

function play() {
  if (playing) { clearInterval(playing); playing = null; }
  else playing = setInterval(() => { if (step < steps.length - 1) go(step + 1); else play(); }, 900);
  $("play").textContent = playing ? "Pause" : "Play";
}

const ACTIONS = {
  ArrowRight: () => go(step + 1), ArrowLeft: () => go(step - 1), ArrowDown: over, ArrowUp: out,
  Home: () => go(0), End: () => go(steps.length - 1), " ": play, d: theme, "/": () => $("search").focus(),
};
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target === $("search")) { if (event.key === "Escape") { $("search").value = ""; search(""); $("search").blur(); } return; }
  if (event.target.tagName === "BUTTON" && event.key === " ") return;
  if (event.target === $("slider") && event.key.startsWith("Arrow")) $("slider").blur();
  const action = ACTIONS[event.key];
  if (action) { event.preventDefault(); action(); }
});
for (const [id, key] of [["first", "Home"], ["last", "End"], ["back", "ArrowLeft"], ["forward", "ArrowRight"], ["over", "ArrowDown"],
  ["out", "ArrowUp"], ["play", " "], ["theme", "d"]]) $(id).addEventListener("click", () => ACTIONS[key]());
$("slider").addEventListener("input", () => go(+$("slider").value));
$("search").addEventListener("input", () => search($("search").value));
$("rows").addEventListener("scroll", drawRows, { passive: true });
$("rows").addEventListener("click", (event) => {
  const line = event.target.closest(".row");
  if (!line) return;
  const h = +line.dataset.hop;
  if (event.target.className === "fold" && end[h] > h + 1) { folded[h] = 1 - folded[h]; listRows(); drawRows(); }
  else go(entering[h]);
});
$("canvas").addEventListener("click", (event) => {
  const box = event.target.closest("[data-hop]");
  if (box) go(entering[+box.dataset.hop]);
});
addEventListener("resize", () => { if (N) go(step, true); });
addEventListener("hashchange", () => go((parseInt(location.hash.slice(1)) || 1) - 1, true));

function theme() {
  const dark = document.documentElement.classList.toggle("dark");
  try { localStorage.setItem("redispatch-theme", dark ? "dark" : "light"); } catch { /* a page without storage */ }
}
{
  let wish = null;
  try { wish = localStorage.getItem("redispatch-theme"); } catch { /* a page without storage */ }
  if (wish ? wish === "dark" : matchMedia("(prefers-color-scheme: dark)").matches) document.documentElement.classList.add("dark");
}

$("slider").max = Math.max(0, steps.length - 1);
if (N) { listRows(); go((parseInt(location.hash.slice(1)) || 1) - 1, true); }
else $("sentence").textContent = "No operator was called while the trace recorded.";
