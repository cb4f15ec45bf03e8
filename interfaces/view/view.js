// The live page: asks its server once a second, and changes only what has changed, so that focus and selection stay.
// Uses what elements.js and items.js have.
"use strict";

const key = new URLSearchParams(location.search).get("key") ?? "";
const EVERY_MS = 1000;
// Scores are computed from all answers so far, which takes longer.
const SCORES_MS = 3000;

async function ask(path, body) {
  const headers = { Authorization: `Bearer ${key}` };
  if (body !== undefined) headers["Content-Type"] = "application/json";
  const answer = await fetch(path, { method: body === undefined ? "GET" : "POST", headers, body: JSON.stringify(body) });
  if (answer.status === 401 || answer.status === 403) throw new Error("the address of this page has no valid key: open the one that the command printed");
  const value = await answer.json();
  if (value?.error !== undefined) throw new Error(value.error);
  return value;
}

// ---- texts ----

const dollars = (number) => (number == null ? "–" : `$${number.toFixed(number < 1 ? 4 : 2)}`);
const rate = (number) => (number == null ? "–" : number >= 100 ? count(Math.round(number)) : number.toPrecision(2));
const SAID = { begun: "not running", stopped: "ended early", silent: "killed or standing still" };
const STOPPED = {
  budget: "stopped at --max-cost", interrupted: "interrupted", dead_key: "stopped: API key refused", empty_account: "stopped: account empty",
  patience: "stopped: provider down", rejected: "stopped: calls rejected", redirect: "stopped: redirected", truncated: "stopped: answers cut off",
};
const stateText = (run) => (run.state === "stopped" && STOPPED[run.stopped]) || (SAID[run.state] ?? run.state);
const isSending = (run) => ["running", "paused", "ending"].includes(run.state) && run.kind === "run";

const when = (text) => (text ?? "").replace("T", " ").replace("+00:00", " UTC");

function clock(seconds) {
  const all = Math.round(seconds);
  const parts = [Math.floor(all / 3600), Math.floor(all / 60) % 60, all % 60];
  return (parts[0] ? parts : parts.slice(1)).map((part, at) => (at ? String(part).padStart(2, "0") : part)).join(":");
}

function doneText(run) {
  if (run.done == null) return "–";
  const unit = run.item ? ` ${run.item}s` : "";
  return `${count(run.done)} of ${count(run.total)}${unit}`;
}

function setText(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

function setState(element, run) {
  setText(element, stateText(run));
  element.dataset.state = run.state;
}

function setProgress(bar, run) {
  bar.hidden = !run.total;
  bar.max = run.total || 1;
  bar.value = run.done ?? 0;
}

// ---- the list ----

const rows = new Map();
let runs = [];

const addressOf = (...names) => `#${new URLSearchParams(names.map((name) => ["run", name]))}`;
const itemsAddress = (names, fields = {}) => `#${new URLSearchParams({ items: names.join("\n"), ...fields })}`;
const chosen = () => [...rows].filter(([, row]) => row.box.checked).map(([name]) => name);

function rowFor(run) {
  const bar = made("progress", { ariaLabel: `done of ${run.name}` });
  const box = made("input", { type: "checkbox", ariaLabel: `compare ${run.name}` });
  const row = { box, bar, done: made("span"), state: made("span", { className: "state" }) };
  box.addEventListener("change", () => { byId("compare").disabled = chosen().length !== 2; });
  row.link = made("a", { href: addressOf(run.name), textContent: run.name });
  row.what = made("span", { className: "note" });
  for (const name of ["rate", "inFlight", "cost"]) row[name] = made("td", { className: "number" });
  row.waits = made("td");
  row.line = made(
    "tr", {},
    made("td", {}, box),
    made("th", { scope: "row" }, row.link, made("br"), row.what),
    made("td", {}, row.state),
    made("td", {}, bar, " ", row.done),
    row.rate, row.inFlight, row.cost, row.waits,
  );
  return row;
}

function showRow(row, run) {
  setState(row.state, run);
  setProgress(row.bar, run);
  setText(row.done, doneText(run));
  setText(row.what, [run.kind === "load" ? "load test" : run.benchmark, (run.models ?? []).join(", ")].filter(Boolean).join(": "));
  const sends = isSending(run);
  setText(row.rate, sends ? rate(run.per_s) : "–");
  setText(row.inFlight, sends ? count(run.in_flight) : "–");
  setText(row.cost, dollars(run.spent) + (run.max_cost != null ? ` of ${dollars(run.max_cost)}` : ""));
  setText(row.waits, (run.waits ?? []).join(", ") || (run.done == null ? run.line ?? "" : ""));
}

function showList() {
  const body = byId("rows");
  const names = new Set(runs.map((run) => run.name));
  for (const [name, row] of rows) {
    if (!names.has(name)) {
      row.line.remove();
      rows.delete(name);
    }
  }
  runs.forEach((run, at) => {
    if (!rows.has(run.name)) rows.set(run.name, rowFor(run));
    const row = rows.get(run.name);
    try {
      showRow(row, run);
    } catch {
      setState(row.state, { state: "unreadable" }); // a state that is none of ours
    }
    // Moving a row takes the focus from it.
    if (body.children[at] !== row.line && !row.line.contains(document.activeElement)) body.insertBefore(row.line, body.children[at] ?? null);
  });
  const going = runs.filter(isSending).length;
  setText(byId("summary"), runs.length ? `${several(runs.length, "run")}, ${going ? count(going) : "none"} active.` : "There is no run below the folders that this page was given.");
}

// Where two runs differ most stands first.
byId("compare").addEventListener("click", () => { location.hash = itemsAddress(chosen(), { sort: "apart" }); });

// ---- one run, or two side by side ----

const panels = new Map();

function button(text, act) {
  return made("button", { className: "small", textContent: text, onclick: act });
}

function panelFor(name) {
  const panel = { name, facts: new Map(), scored: 0 };
  panel.state = made("span", { className: "state" });
  panel.bar = made("progress", { ariaLabel: `done of ${name}` });
  panel.list = made("dl", { className: "facts" });
  panel.steer = steerFor(panel);
  panel.scores = made("div", {});
  panel.lanes = made("div", {});
  panel.figures = made("pre", { hidden: true, tabIndex: 0, role: "region", ariaLabel: `figures of ${name}` });
  panel.element = made("article", {}, made("h2", { textContent: name }), made("p", {}, panel.state, " ", panel.bar), panel.list, panel.steer, panel.scores, panel.lanes, panel.figures);
  return panel;
}

function steerFor(panel) {
  const said = made("output", {});
  const send = async (action, fields = {}) => {
    said.textContent = "asking …";
    try {
      const state = await ask("/steer", { run: panel.name, action, ...fields });
      said.textContent = { paused: "Paused.", ended: "It has ended.", ending: "It is ending: calls in flight are finished." }[state.state] ?? `Running: ${state.line}`;
      refresh();
    } catch (error) {
      said.textContent = error.message;
    }
  };
  const field = (title, step) => {
    const input = made("input", { type: "number", min: step === "1" ? "1" : "0", step });
    return { input, label: made("label", {}, title, made("br"), input) };
  };
  const places = field("Calls in flight for each model", "1");
  const limit = field("Limit in dollars", "any");
  panel.pause = button("Pause", () => send(panel.pause.textContent === "Pause" ? "pause" : "resume"));
  const set = button("Set", () => {
    const fields = {};
    if (places.input.value) fields.concurrency = Number(places.input.value);
    if (limit.input.value) fields.max_cost = Number(limit.input.value);
    if (Object.keys(fields).length) send("set", fields);
    else said.textContent = "Write calls in flight, a limit, or both.";
  });
  let isSure = false;
  const stop = button("Stop", () => {
    stop.textContent = isSure ? "Stop" : "Stop: finish calls in flight and end?";
    if (isSure) send("stop");
    isSure = !isSure;
  });
  stop.addEventListener("blur", () => {
    isSure = false;
    stop.textContent = "Stop";
  });
  const aria = { role: "group", label: `steer ${panel.name}` };
  return made("div", { className: "steer", aria }, panel.pause, places.label, limit.label, set, stop, said);
}

function setFact(panel, title, text) {
  let fact = panel.facts.get(title);
  if (fact === undefined) {
    fact = { title: made("dt", { textContent: title }), text: made("dd", {}) };
    panel.facts.set(title, fact);
    panel.list.append(fact.title, fact.text);
  }
  fact.title.hidden = fact.text.hidden = text === "";
  setText(fact.text, text);
}

const counts = (kinds) => Object.entries(kinds ?? {}).map(([kind, number]) => `${kind} ${count(number)}`).join(", ");

function showPanel(panel, run) {
  if (run === undefined) {
    setText(panel.state, "There is no such run below the folders that this page was given.");
    panel.steer.hidden = panel.bar.hidden = true;
    return;
  }
  const sends = isSending(run);
  setState(panel.state, run);
  setProgress(panel.bar, run);
  panel.steer.hidden = !sends;
  setText(panel.pause, run.state === "paused" ? "Resume" : "Pause");
  setFact(panel, "What", [run.benchmark, (run.models ?? []).join(", ")].filter(Boolean).join(": "));
  setFact(panel, "Done", run.done == null ? "" : doneText(run) + (run.cached ? `, ${count(run.cached)} from the cache` : ""));
  setFact(panel, "Rate", sends ? `${rate(run.per_s)} a second, ${rate(run.average_per_s)} on average, ${count(run.in_flight)} in flight` : "");
  setFact(panel, "Time left", sends && run.left_s != null ? clock(run.left_s) : "");
  setFact(panel, "Cost", run.spent == null ? "" : `${dollars(run.spent)}${run.expected != null && sends ? ` of about ${dollars(run.expected)}` : ""}`);
  setFact(panel, "Limit", run.max_cost == null ? "" : `${dollars(run.max_cost)}, ${dollars(run.reserved)} reserved for calls in flight`);
  setFact(panel, "Waits for", (run.waits ?? []).join(", "));
  setFact(panel, "Failed", sends ? counts(run.failures) : run.failed ? count(run.failed) : "");
  setFact(panel, "Repeated", counts(run.retries));
  setFact(panel, "Report", run.report ?? "");
  setFact(panel, "Started", when(run.started));
  setFact(panel, "Ended", when(run.ended));
  panel.figures.hidden = !run.figures;
  setText(panel.figures, run.figures ?? "");
  setFact(panel, "As it says", !sends && run.line ? run.line : "");
  setTable(panel.lanes, "Models", ["model", "done", "a second", "in flight", "at most", "state"], (run.lanes ?? []).map((lane) => [lane.model, count(lane.done), rate(lane.per_s), count(lane.in_flight), count(lane.concurrency), lane.stopped || "open"]));
  if (run.kind === "run" && Date.now() - panel.scored >= (sends ? SCORES_MS : 10 * SCORES_MS)) showScores(panel);
}

async function showScores(panel) {
  panel.scored = Date.now();
  try {
    const table = await ask(`/scores?${new URLSearchParams({ run: panel.name })}`);
    const title = table.is_final ? "Scores" : table.share < 1 ? `Scores of the first ${percent(table.share)} of the records alone` : "Scores so far";
    if (table.share < 1) panel.scored = 0;
    setTable(panel.scores, title, ["model", ...table.columns], table.rows);
  } catch (error) {
    panel.scores.replaceChildren(made("p", { className: "note", textContent: error.message }));
  }
}

function setTable(place, title, heads, lines) {
  const text = JSON.stringify([title, heads, lines]);
  if (place.dataset.text === text) return;
  place.dataset.text = text;
  if (!lines.length) {
    place.replaceChildren();
    return;
  }
  const isNumber = (at) => at > 0 && lines.every((line) => /^[-–$<\d]/.test(line[at] ?? "-"));
  const cell = (tag, line) => line.map((one, at) => {
    const [kind, className] = [at || tag === "th" ? tag : "th", isNumber(at) ? "number" : ""];
    return made(kind, { textContent: one, className, ...(kind === "th" ? { scope: tag === "th" ? "col" : "row" } : {}) });
  });
  const label = panels.size > 1 ? `${title} of ${place.closest("article").querySelector("h2").textContent}` : title;
  const table = made("table", {}, made("thead", {}, made("tr", {}, ...cell("th", heads))), made("tbody", {}, ...lines.map((line) => made("tr", {}, ...cell("td", line)))));
  place.replaceChildren(made("h3", { textContent: title }), made("div", { className: "table", tabIndex: 0, aria: { role: "region", label } }, table));
}

// ---- the items ----

// The table that the report has too keeps its state in the address, under the id of its element: the runs' names.
let items = null;
const doneOf = (names) => names.map((name) => runs.find((run) => run.name === name)?.done).join();

function showTable(names) {
  const id = names.join("\n");
  const fields = new URLSearchParams(location.hash.slice(1));
  byId("open-items").hidden = items?.id === id || fields.get("items") === id;
  if (items?.id === id) return;
  closeTable();
  if (fields.get("items") !== id) return;
  const query = new URLSearchParams(names.map((name) => ["run", name]));
  const element = made("div", { className: "items", id });
  byId("items-place").append(element);
  const began = Date.now();
  const mine = items = { id, query, share: 1, at: Infinity, done: doneOf(names) };
  mine.table = showItems(element, {
    columns: async () => {
      const columns = await ask(`/columns?${query}`);
      mine.share = columns.share;
      return columns;
    },
    details: (item) => ask(`/details?${query}&${new URLSearchParams({ item })}`),
  });
  mine.table.ready.then(() => {
    mine.took = Date.now() - began;
    return readRest(mine);
  }).then(() => names.length === 2 && items === mine && showDifference(mine)).catch(() => {}).finally(() => { mine.at = Date.now(); });
}

// What `score` prints of two runs that have ended.
async function showDifference(mine) {
  const { text } = await ask(`/compared?${mine.query}`);
  if (text && items === mine) byId("items-place").prepend(made("pre", { className: "difference", textContent: text }));
}

function closeTable() {
  byId("items-place").replaceChildren();
  setText(byId("items-reading"), "");
  items?.table.close();
  items = null;
}

// A table of the first records stands there at once; the rest is read while somebody looks at it, a part each request.
async function readRest(mine) {
  while (mine.share < 1 && items === mine) {
    const { share } = await ask(`/share?${mine.query}`);
    if (items !== mine) return;
    setText(byId("items-reading"), `Reading the records: ${percent(share)} …`);
    if (share === 1) await mine.table.refresh();
  }
  setText(byId("items-reading"), "");
}

// Of a run that somebody looks at, so that its table opens soon.
async function readAhead(name) {
  while (panels.has(name) && items === null && (await ask(`/share?${new URLSearchParams({ run: name })}`)).share < 1);
}

byId("open-items").addEventListener("click", () => { location.hash = itemsAddress(shown()); });

// New answers come into an open table now and then, but not while somebody works in it.
async function followItems(names) {
  const mine = items, done = doneOf(names);
  if (mine === null || mine.done === done || Date.now() - mine.at < Math.max(5000, 20 * mine.took)) return;
  if (byId("items-place").contains(document.activeElement)) return;
  const began = Date.now();
  [mine.at, mine.done] = [Infinity, done];
  try {
    await mine.table.refresh();
    await readRest(mine);
    mine.took = Math.max(mine.took, Date.now() - began);
  } finally {
    mine.at = Date.now();
  }
}

// ---- labels ----

const labelsOf = () => new URLSearchParams(location.hash.slice(1)).get("label");
let asked = null; // the question that is shown
let passed = []; // the places of the answers before, the latest last
let picked = null; // a choice that waits for its certainty

const rater = () => byId("rater").value.trim();

async function askLabel(place = {}) {
  const query = { run: labelsOf(), rater: rater(), ...place };
  const name = JSON.stringify([query.run, query.rater]);
  const question = await ask(`/question?${new URLSearchParams(query)}`);
  if (name !== JSON.stringify([labelsOf(), rater()])) return;
  [asked, picked] = [question, null];
  drawQuestion();
}

function drawQuestion(trouble = "") {
  const one = asked;
  const head = made("p", { className: "note", textContent: `${count(one.labelled)} of ${count(one.of)} labelled${one.at == null ? "; that was the last." : `; this is number ${count(one.at + 1)}.`}` });
  const undo = button("Undo (U)", undoLabel);
  undo.disabled = !passed.length;
  const said = made("p", { className: "alert", role: "alert", textContent: trouble, hidden: !trouble });
  if (one.at == null) {
    byId("question").replaceChildren(head, undo, said);
    return;
  }
  const said_ = (text) => made("div", { className: "said", textContent: text });
  const choices = one.choices.map(([letter, name, words]) => {
    const isChosen = letter === picked || (picked === null && name === one.label);
    return Object.assign(button(`${letter}: ${words || name}`, () => pick(letter)), { ariaPressed: String(isChosen) });
  });
  const steps = picked === null ? [] : [...one.certainties.map(([digit, name]) => button(`${digit}: ${name}`, () => pick(digit))), button("Enter: leave it out", () => pick("Enter"))];
  const history = one.history.length ? [made("details", {}, made("summary", { textContent: `Earlier turns: ${one.history.length}` }), ...one.history.flatMap(([question, text]) => [made("h2", { textContent: "Earlier question" }), said_(question), made("h2", { textContent: "Earlier answer" }), said_(text)]))] : [];
  byId("question").replaceChildren(
    head,
    ...Object.entries(one.about).map(([name, text]) => made("p", { className: "note", textContent: `${name[0].toUpperCase()}${name.slice(1)}: ${text}` })),
    ...history,
    ...(one.question ? [made("h2", { textContent: "Question" }), said_(one.question)] : []),
    made("h2", { textContent: "Answer" }),
    said_(one.text),
    made("p", { textContent: one.ask || "Which label fits the answer?" }),
    made("div", { className: "steer" }, ...choices, button("Skip (S)", skipLabel), undo),
    ...(steps.length ? [made("p", { textContent: "How certain?" }), made("div", { className: "steer" }, ...steps)] : []),
    said,
  );
}

// The next answer is shown only after the server has said that the label is on disk.
async function setLabel(question, label, certainty = null) {
  try {
    await ask("/label", { run: labelsOf(), rater: rater(), at: question.at, mark: question.mark, label, certainty });
    return true;
  } catch (error) {
    drawQuestion(`The label is not saved: ${error.message}. Give it again.`);
    return false;
  }
}

let isSaving = false;
async function alone(act) {
  if (isSaving) return;
  isSaving = true;
  try {
    await act();
  } catch (error) {
    byId("question").replaceChildren(made("p", { className: "alert", role: "alert", textContent: error.message }));
  } finally {
    isSaving = false;
  }
}

// Returns whether the key means anything here.
function pick(keyName) {
  const choice = asked.choices.find(([letter]) => letter === keyName.toUpperCase());
  const step = asked.certainties.find(([digit]) => digit === keyName);
  if (choice && asked.certainties.length) {
    picked = choice[0];
    drawQuestion();
    return true;
  }
  if (choice || (picked !== null && (step || keyName === "Enter"))) {
    const [, name] = choice ?? asked.choices.find(([letter]) => letter === picked);
    alone(async () => {
      if (!(await setLabel(asked, name, step ? step[2] : null))) return;
      passed.push(asked.at);
      await askLabel();
    });
    return true;
  }
  return false;
}

// What was skipped comes again at the end.
function skipLabel() {
  alone(async () => {
    passed.push(asked.at);
    await askLabel({ after: asked.at });
  });
}

function undoLabel() {
  if (!passed.length) return;
  alone(async () => {
    const at = passed.pop();
    await askLabel({ at });
    if (asked.label !== null && (await setLabel(asked, null))) await askLabel({ at });
  });
}

byId("open-labels").addEventListener("click", () => { location.hash = `#${new URLSearchParams({ label: shown()[0] })}`; });
byId("rater").value = sessionStorage.getItem("rater") ?? "";
byId("rater-form").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem("rater", rater());
  passed = [];
  document.activeElement.blur();
  alone(() => askLabel());
});

function labelKey(event) {
  if (asked === null || event.target.closest("input")) return false;
  const name = event.key.toUpperCase();
  if (name === "U") undoLabel();
  else if (asked.at == null) return false;
  else if (name === "S") skipLabel();
  else return !(name === "ENTER" && event.target.closest("button")) && pick(event.key);
  return true;
}

function showLabelling(name) {
  byId("labelling").hidden = name === null;
  if (name === null || byId("labelling").dataset.run === name) return;
  byId("labelling").dataset.run = name;
  byId("labelling-back").href = addressOf(name);
  [asked, passed] = [null, []];
  byId("question").replaceChildren();
  byId("rater").focus();
}

// ---- what is shown ----

function shown() {
  const fields = new URLSearchParams(location.hash.slice(1));
  return (fields.get("items")?.split("\n") ?? fields.getAll("run")).slice(0, 2);
}

function show() {
  const names = shown();
  showLabelling(labelsOf());
  byId("list").hidden = names.length > 0 || labelsOf() !== null;
  byId("one").hidden = names.length === 0;
  setText(byId("title"), labelsOf() !== null ? `Labels: ${labelsOf()}` : names.length === 0 ? "Runs" : names.join(" and "));
  document.title = names.length ? `${names.join(" and ")} – Millstream` : "Millstream runs";
  if (names.length === 0) showList();
  for (const [name, panel] of panels) {
    if (!names.includes(name)) {
      panel.element.remove();
      panels.delete(name);
    }
  }
  for (const name of names) {
    if (!panels.has(name)) {
      panels.set(name, panelFor(name));
      if (runs.some((run) => run.name === name && run.kind === "run" && !isSending(run))) readAhead(name).catch(() => {});
      byId("panels").append(panels.get(name).element);
    }
    showPanel(panels.get(name), runs.find((run) => run.name === name));
  }
  // Runs of different benchmarks have no item in common.
  const kinds = new Set(names.map((name) => runs.find((run) => run.name === name && run.kind === "run")?.items_of));
  const hasItems = kinds.size === 1 && !kinds.has(undefined);
  byId("items-title").hidden = byId("open-items").hidden = !hasItems;
  byId("no-items").hidden = kinds.size < 2 || kinds.has(undefined);
  byId("open-labels").hidden = !hasItems || names.length > 1;
  if (hasItems) {
    showTable(names);
    followItems(names).catch(() => {}); // a server that is away is told of above
  } else closeTable();
}

let timer;
async function refresh() {
  clearTimeout(timer);
  const trouble = byId("trouble");
  try {
    runs = await ask("/runs");
    trouble.hidden = true;
    show();
  } catch (error) {
    trouble.hidden = false;
    setText(trouble, error instanceof TypeError ? "The server does not answer: is `millstream view` still running? It is asked again." : error.message);
  }
  clearTimeout(timer);
  // A page that nobody sees asks nothing.
  if (!document.hidden) timer = setTimeout(refresh, EVERY_MS);
}

addEventListener("hashchange", () => {
  const before = [...panels.keys()].join("\n");
  show();
  if (before !== shown().join("\n")) scrollTo(0, 0);
});
addEventListener("popstate", show);
document.addEventListener("visibilitychange", () => { if (!document.hidden) refresh(); });
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, select, textarea") && event.target.type !== "checkbox") return;
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (!byId("labelling").hidden && event.key !== "Escape") {
    if (labelKey(event)) event.preventDefault();
    return;
  }
  const step = { j: 1, k: -1 }[event.key];
  if (event.key === "Escape" && !event.target.closest(".items")) location.hash = "";
  else if (step !== undefined && !byId("list").hidden) {
    const links = [...document.querySelectorAll("#rows a")];
    const at = links.indexOf(document.activeElement);
    links[Math.min(links.length - 1, Math.max(0, at + step))]?.focus();
  }
});
refresh();
