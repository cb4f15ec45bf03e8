// Items by models: a table to search, filter and sort, and one item with what each model answered. Uses what elements.js
// has: a report has its data inside, a live page asks its server.
//
//   showItems(element, {columns: async () => …, details: async (item) => …})
//
// `columns` gives what all cells show, `details` what one item shows (null: it is not there), each with the `share` of
// the records that it is of, if that is not all. Returns {refresh, close}: `refresh` asks for the columns anew and keeps
// what the reader has chosen, `close` ends it all.
"use strict";

{
  const ROW = 44; // pixels, as in the style sheet
  const TALLEST = 8_000_000; // of a scrolled box: browsers draw no taller one
  const AT_ONCE = 70; // cells that one redraw makes while the box is scrolled
  const ON_PAPER = 60;
  const FOLDED = 600; // characters of a turn's answer
  const MODELS = 6; // that are shown at first
  const LABELS = 40; // that can be chosen from
  const FLAGS = {
    differ: "Models differ",
    trials: "Trials differ",
    wrong: "Wrong",
    none: "No score",
  };
  const ORDERS = {
    run: "As in the data",
    apart: "Largest difference first",
    low: "Lowest score first",
    high: "Highest score first",
    long: "Longest answer first",
    dear: "Dearest first",
    tokens: "Most tokens first",
  };
  const RANGES = { score: "Score", longest: "Longest answer", cost: "Dollars" };

  const figure = (number) => (Number.isNaN(number) ? "–" : String(Math.round(number * 1000) / 1000));
  const dollars = (number) => (Number.isNaN(number) ? "–" : `$${number >= 0.01 || number === 0 ? number.toFixed(2) : number.toPrecision(2)}`);

  // ---- numbers ----

  function typed(data) {
    const { cells } = data;
    // Of a row of equal numbers there is the first alone.
    const numbers = (Kind, rows) => rows.map((row) => {
      const values = new Kind(data.items.length), isOne = row.length === 1;
      for (let at = 0; at < values.length; at++) values[at] = row[isOne ? 0 : at] ?? NaN;
      return values;
    });
    const floats = (rows) => numbers(Float64Array, rows), whole = (rows) => numbers(Int32Array, rows);
    return {
      ...data,
      score: floats(cells.score),
      cost: floats(cells.cost),
      figures: Object.fromEntries(Object.entries(data.figures ?? {}).map(([name, rows]) => [name, floats(rows)])),
      path: cells.path ?? [],
      tokens: floats(cells.tokens),
      ...Object.fromEntries(["answers", "status", "label", "agree", "differ", "longest"].map((name) => [name, whole(cells[name])])),
      words: null, // made when somebody searches
      ...Object.fromEntries(["score", "cost", "tokens"].map((name) => [`has_${name}`, cells[name].some((row) => row.some((each) => each !== null))])),
      has_wrong: data.models.some(({ within }) => within),
      place: null,
      cells: null,
    };
  }

  function placeOf(data, item) {
    data.place ??= new Map(data.items.map((each, at) => [each, at]));
    return data.place.get(item) ?? -1;
  }

  // The labels that answers have, if they are few enough to choose from.
  function labelsOf(data) {
    const kinds = new Set();
    for (const [model, row] of data.label.entries()) {
      for (let at = 0; at < row.length && kinds.size <= LABELS; at++) if (data.answers[model][at]) kinds.add(row[at]);
    }
    return kinds.size <= LABELS ? [...kinds].map((at) => data.labels[at]).filter(Boolean).sort() : [];
  }

  // What is drawn of an item from those models that are shown.
  const over = (rows, models, at, by, start) => models.reduce((so, model) => (Number.isNaN(rows[model][at]) ? so : by(so, rows[model][at])), start);
  // Of several runs, each model is compared with itself: two models of one run differ anyway.
  function alike(data, models) {
    if (data.alike?.of === models) return data.alike;
    const nameOf = (at) => data.models[at].name.slice(data.models[at].folder.length);
    const groups = [...new Set(models.map(nameOf))].map((name) => models.filter((at) => nameOf(at) === name));
    const twice = groups.filter((group) => group.length > 1);
    // A model at another temperature is no other model.
    const bare = new Set(models.map((at) => nameOf(at).split(" @ ")[0]));
    const differ = twice.length ? "Runs differ" : bare.size < models.length ? "Columns differ" : FLAGS.differ;
    data.alike = { of: models, groups: twice.length ? twice : [models], differ };
    return data.alike;
  }
  const apart = (data, models, at) => Math.max(...alike(data, models).groups.map((group) => apartIn(data, group, at)));
  const apartIn = (data, models, at) => {
    const spread = over(data.score, models, at, Math.max, -Infinity) - over(data.score, models, at, Math.min, Infinity);
    if (spread >= 0) return spread;
    const labels = new Set(models.filter((model) => data.answers[model][at]).map((model) => data.label[model][at]));
    return labels.size > 1 ? 1 : 0;
  };
  const mean = (data, models, at, rows = data.score) => {
    const there = models.filter((model) => !Number.isNaN(rows[model][at]));
    return there.length ? there.reduce((sum, model) => sum + rows[model][at], 0) / there.length : NaN;
  };
  // NaN: none of these models has one.
  const sum = (rows) => (data, models, at) => over(data[rows], models, at, (so, value) => (Number.isNaN(so) ? value : so + value), NaN);
  const [cost, spentTokens] = [sum("cost"), sum("tokens")];
  // NaN, which no score is below: the run's scale is not known.
  const rightFrom = ({ within }) => (within ? (within[0] + within[1]) / 2 : NaN);
  const longest = (data, models, at) => over(data.longest, models, at, Math.max, 0);
  // The mean of a figure that the benchmark computes of whole cells, over these models.
  const figured = (name) => [(data, models, at) => -mean(data, models, at, data.figures[name]), name, (data, models, at) => figure(mean(data, models, at, data.figures[name]))];
  const keyOf = (data, sort) => KEYS[sort] ?? (Object.hasOwn(data.figures, sort) ? figured(sort) : null);
  const KEYS = {
    apart: [(data, models, at) => -apart(data, models, at), "Difference", (data, models, at) => figure(apart(data, models, at))],
    low: [mean, "Mean", (data, models, at) => figure(mean(data, models, at))],
    high: [(data, models, at) => -mean(data, models, at), "Mean", (data, models, at) => figure(mean(data, models, at))],
    long: [(...of) => -longest(...of), "Longest answer", (...of) => count(longest(...of))],
    dear: [(...of) => -cost(...of), "Cost", (...of) => dollars(cost(...of))],
    tokens: [(...of) => -spentTokens(...of), "Tokens", (...of) => (Number.isNaN(spentTokens(...of)) ? "–" : count(spentTokens(...of)))],
  };

  const NEEDS = { low: "score", high: "score", wrong: "wrong", none: "score", dear: "cost", tokens: "tokens", score: "score", cost: "cost" };
  // Those of these choices for which the data have numbers.
  const offered = (data, choices) => Object.entries(choices).filter(([name]) => !NEEDS[name] || data[`has_${NEEDS[name]}`]);

  function matching(data, chosen, models) {
    const words = chosen.find.toLowerCase().split(/\s+/).filter(Boolean);
    if (words.length) data.words ??= data.items.map((item, at) => `${item} ${data.titles[at]} ${data.groups[data.group[at]] ?? ""} ${data.expected[at] ?? ""}`.toLowerCase());
    const hits = words.map((word) => data.labels.map((label) => label.toLowerCase().includes(word)));
    const group = data.groups.indexOf(chosen.group), status = data.statuses.indexOf(chosen.status), label = data.labels.indexOf(chosen.label);
    const of = chosen.of === "" ? models : [Number(chosen.of)];
    const cell = [];
    if (chosen.status) cell.push((model, at) => data.status[model][at] === status);
    if (chosen.label) cell.push((model, at) => data.answers[model][at] > 0 && data.label[model][at] === label);
    if (chosen.trials) cell.push((model, at) => data.differ[model][at] === 1);
    if (chosen.wrong) cell.push((model, at) => data.score[model][at] < rightFrom(data.models[model]));
    if (chosen.none) cell.push((model, at) => data.answers[model][at] > 0 && Number.isNaN(data.score[model][at]));
    for (const name of Object.keys(RANGES)) {
      const [least, most] = [chosen[`${name}From`], chosen[`${name}To`]].map((text) => (text === "" ? NaN : Number(text)));
      if (!Number.isNaN(least)) cell.push((model, at) => data.answers[model][at] > 0 && data[name][model][at] >= least);
      if (!Number.isNaN(most)) cell.push((model, at) => data.answers[model][at] > 0 && data[name][model][at] <= most);
    }
    const found = [];
    for (let at = 0; at < data.items.length; at++) {
      if (chosen.group && data.group[at] !== group) continue;
      if (words.length && !words.every((word, place) => data.words[at].includes(word) || models.some((model) => data.answers[model][at] && hits[place][data.label[model][at]]))) continue;
      if (chosen.differ && !apart(data, models, at)) continue;
      if (cell.length && !of.some((model) => cell.every((holds) => holds(model, at)))) continue;
      found.push(at);
    }
    return sorted(data, chosen, models, found);
  }

  function sorted(data, chosen, models, found) {
    const model = /^m\d+$/.test(chosen.sort) ? Number(chosen.sort.slice(1)) : null;
    const by = keyOf(data, chosen.sort);
    if (model === null && !by) return found;
    const keys = new Float64Array(data.items.length);
    for (const at of found) {
      let key = model === null ? by[0](data, models, at) : data.score[model][at];
      if (model !== null && !data.has_score) key = data.answers[model][at] ? data.label[model][at] : NaN;
      keys[at] = Number.isNaN(key) ? Infinity : model !== null && chosen.down ? -key : key;
    }
    return found.sort((one, other) => keys[one] - keys[other] || one - other);
  }

  // ---- the words that differ ----

  const tokens = (text) => text.match(/[\p{L}\p{N}_]+|\s+|[^\p{L}\p{N}_\s]/gu) ?? [];

  // Returns for each token of `text` whether it stands in `base` at its place, by the longest common subsequence.
  function isShared(text, base) {
    const shared = new Uint8Array(text.length);
    let begin = 0, end = 0;
    while (begin < text.length && begin < base.length && text[begin] === base[begin]) shared[begin++] = 1;
    while (end < Math.min(text.length, base.length) - begin && text.at(-1 - end) === base.at(-1 - end)) shared[text.length - ++end] = 1;
    const one = text.slice(begin, text.length - end), other = base.slice(begin, base.length - end), width = other.length + 1;
    if (one.length * width > 3_000_000) {
      const there = new Set(other);
      one.forEach((token, at) => { shared[begin + at] = there.has(token) ? 1 : 0; });
      return shared;
    }
    const longest = new Uint16Array((one.length + 1) * width);
    for (let at = one.length - 1; at >= 0; at--) {
      for (let to = other.length - 1; to >= 0; to--) {
        longest[at * width + to] = one[at] === other[to] ? longest[(at + 1) * width + to + 1] + 1 : Math.max(longest[(at + 1) * width + to], longest[at * width + to + 1]);
      }
    }
    for (let at = 0, to = 0; at < one.length && to < other.length;) {
      if (one[at] === other[to]) { shared[begin + at++] = 1; to++; }
      else if (longest[(at + 1) * width + to] >= longest[at * width + to + 1]) at++;
      else to++;
    }
    return shared;
  }

  function marked(text, base) {
    if (base === null || base === text) return [text];
    const words = tokens(text), shared = isShared(words, tokens(base)), parts = [];
    for (let at = 0; at < words.length;) {
      let next = at;
      // Spaces between words that differ are part of what differs.
      const isSame = (place) => shared[place] || (!words[place].trim() && (place + 1 >= words.length || shared[place + 1]));
      while (next < words.length && Boolean(isSame(next)) === Boolean(isSame(at))) next++;
      const piece = words.slice(at, next).join("");
      parts.push(isSame(at) ? piece : made("mark", { textContent: piece }));
      at = next;
    }
    return parts;
  }

  // ---- one item ----

  // Ids are addresses, so they come as they are; other texts have stand-ins for such signs already.
  const visible = (id) => id.replace(/[\p{Cc}\u200e\u200f\u2028-\u202e\u2066-\u2069]/gu, "\ufffd");

  const said = (text, base = null) => (text ? made("div", { className: "said" }, ...marked(text, base)) : made("p", { className: "empty", textContent: "No text." }));
  const folded = (title, ...children) => made("details", {}, made("summary", { textContent: title }), ...children);

  function facts(pairs) {
    const list = made("dl", { className: "facts" });
    for (const [name, value] of pairs) list.append(made("dt", { textContent: name }), made("dd", { className: "plain", textContent: value }));
    return list;
  }

  function part(one) {
    if (one.image !== undefined) {
      if (/^data:image\/[a-z+.-]+;base64,[A-Za-z0-9+/=]+$/.test(one.image)) return made("img", { src: one.image, alt: "An image of the prompt" });
      return made("p", { className: "note", textContent: `Image: ${one.image}` });
    }
    if (one.call !== undefined) return folded(`Asks for the tool ${one.call}`, said(one.arguments));
    if (one.result !== undefined) return folded("A tool’s result", said(one.result));
    return said(one.text);
  }

  const message = ({ role, content }) => made("div", { className: `message ${["system", "user", "assistant", "tool"].includes(role) ? role : "user"}` }, made("p", { className: "role", textContent: role }), ...content.map(part));

  function step(one) {
    if (one.note !== undefined) return made("p", { className: "note plain", textContent: one.note });
    const [asked, given] = one.heads ?? ["Arguments", "Result"];
    if (one.tool !== undefined) return folded(`${one.isError ? "Failed: " : ""}${one.tool}`, made("h6", { textContent: asked }), said(one.arguments), made("h6", { textContent: given }), said(one.result));
    return one.role === undefined ? part(one) : message(one);
  }

  function judged(one) {
    const grade = one.grade === null ? "no grade" : one.grade;
    const head = `${one.scorer ? `${one.scorer}: ` : ""}${one.model} says ${grade}${one.score === null ? "" : ` (${figure(one.score)})`}`;
    return made("div", { className: "judgement" }, made("p", { className: "note plain", textContent: head }), one.reason ? made("p", { className: "reason", textContent: one.reason }) : "", one.reply ? folded("Its reply", said(one.reply)) : "",
        one.reference ? folded("Compared with", said(one.reference)) : "");
  }

  // The labels of turns by their letters; the strip is one picture to who can't see it.
  const letter = (label) => made("span", { className: "step", textContent: label[0].toUpperCase(), title: label, data: { label } });
  function strip(data, path) {
    const labels = [...path].map((sign) => data.steps[Number.parseInt(sign, 36)]);
    return made("span", { className: "strip", aria: { role: "img", label: labels.join(", ") } }, ...labels.map(letter));
  }

  // `same`: equal answers, of which the first is shown, with what all of them cost and how long each took.
  function answerOf(same, names, base, isTurn) {
    const [answer] = same;
    const head = [answer.label, answer.variant ? `variant ${answer.variant}` : "", names];
    if (answer.score !== null) head.push(`score ${figure(answer.score)}`);
    head.push(...Object.entries(answer.scores).map(([name, score]) => `${name} ${score === null ? "none" : figure(score)}`));
    if (answer.status !== "ok") head.push(answer.status.replaceAll("_", " "));
    if (answer.isCut) head.push("cut off at max_tokens");
    const short = answer.facts.filter(([, value]) => value.length <= 80 && !value.includes("\n"));
    const long = answer.facts.filter((each) => !short.includes(each));
    const spent = [...short.map(([name, value]) => `${name} ${value}`), costOf(same), secondsOf(same)];
    return made(
      "div",
      { className: "answer" },
      made("p", { className: "note plain" }, answer.label ? letter(answer.label) : "", ` ${head.filter(Boolean).join(" · ")}`, answer.isChange ? made("span", { className: "differs", textContent: " · changed" }) : ""),
      ...answer.prompt.map(message),
      !isTurn ? said(answer.text, base) : answer.text.length > FOLDED ? folded(`Answer, ${count(answer.text.length)} characters`, said(answer.text)) : message({ role: "assistant", content: [{ text: answer.text }] }),
      answer.problem ? made("p", { className: "problem", textContent: answer.problem }) : "",
      ...answer.judge.map(judged),
      ...(isTurn ? answer.steps.map(step) : []),
      answer.steps.length && !isTurn ? folded(`What was said and done, in ${several(answer.steps.length, "step")}`, ...answer.steps.map(step)) : "",
      ...long.map(([name, value]) => folded(name, said(value))),
      made("p", { className: "note plain", textContent: spent.filter(Boolean).join(" · ") }),
    );
  }

  function costOf(same) {
    const costs = same.map((each) => each.cost).filter((cost) => cost !== null);
    return costs.length ? `${dollars(costs.reduce((sum, cost) => sum + cost))}${same.length > 1 ? " together" : ""}` : "";
  }

  function secondsOf(same) {
    const seconds = same.map((each) => each.seconds).filter((number) => number !== null);
    return seconds.length ? `${seconds.map((number) => number.toFixed(2)).join(", ")} s` : "";
  }

  // Equal answers stand there once, with the numbers of their trials.
  function grouped(answers) {
    const groups = new Map();
    for (const answer of answers) {
      const { number, cost, seconds, ...rest } = answer;
      const name = JSON.stringify(rest);
      groups.set(name, [...(groups.get(name) ?? []), answer]);
    }
    return [...groups.values()];
  }

  // What the benchmark computes of a whole cell.
  function figuresOf(data, model, at) {
    const figures = Object.entries({ score: data.score, ...data.figures }).filter(([, rows]) => !Number.isNaN(rows[model][at]));
    return figures.map(([name, rows]) => `${name} ${figure(rows[model][at])}`).join(" · ");
  }

  function column(data, model, at, answers, baseOf) {
    const isTurn = data.answersAre === "turn";
    const groups = isTurn ? answers.map((each) => [each]) : grouped(answers);
    const boxes = groups.map((same) => {
      const numbers = same.map((each) => each.number).filter((number) => number !== null);
      const names = numbers.length && (isTurn || answers.length > 1) ? `${data.answersAre}${numbers.length > 1 ? "s" : ""} ${numbers.join(", ")}` : "";
      return answerOf(same, names, baseOf(same[0].variant), isTurn);
    });
    const [first, ...rest] = boxes;
    const more = isTurn || rest.length < 3 ? rest : [folded(`${count(rest.length)} other answers`, ...rest)];
    return made("section", { className: "column", aria: { label: data.models[model].name } }, made("h5", { textContent: data.models[model].name }), isTurn && data.path.length ? strip(data, data.path[model][at]) : "", isTurn && at >= 0 ? made("p", { className: "note", textContent: figuresOf(data, model, at) }) : "", first ?? made("p", { className: "empty", textContent: "No answer." }), ...more);
  }

  // On a page of several benchmarks a region says whose it is.
  const region = (label, whose) => ({ role: "region", label: whose ? `${label}: ${whose}` : label });

  function itemView(data, details, models, base, whose) {
    const at = placeOf(data, details.item);
    const answers = new Map(details.models.map((each) => [each.model, each.answers]));
    // Answers to the same variant of the prompt are compared.
    const firstOf = (variant) => (base >= 0 ? (answers.get(base)?.find((each) => each.variant === variant)?.text ?? null) : base === -1 ? details.expected || null : null);
    const row = Object.entries(details.row).map(([name, value]) => [name, typeof value === "string" ? value : JSON.stringify(value)]);
    return [
      details.share < 1 ? made("p", { className: "note", textContent: `These are the answers among the first ${percent(details.share)} of the records: the rest is being read.` }) : "",
      data.answersAre === "turn" && at >= 0 && data.titles[at] ? made("p", { className: "plain", textContent: data.titles[at] }) : "",
      data.group.length && data.group[at] >= 0 ? made("p", { className: "note", textContent: `Group: ${data.groups[data.group[at]]}` }) : "",
      ...details.prompts.flatMap(({ variant, messages }) => [made("h4", { className: "plain", textContent: variant ? `Prompt, variant ${variant}` : "Prompt" }), ...messages.map(message)]),
      details.expected ? made("h4", { textContent: "Expected answer" }) : "",
      details.expected ? made("div", { className: "said expected", textContent: details.expected }) : "",
      row.length ? folded("The row of the data", facts(row)) : "",
      made("h4", { textContent: "Answers" }),
      made("div", { className: "columns", tabIndex: 0, aria: region("Answers side by side", whose) }, ...models.map((model) => column(data, model, at, answers.get(model) ?? [], model === base || data.answersAre === "turn" ? () => null : firstOf))),
    ];
  }

  // ---- the table ----

  const EMPTY = { find: "", group: "", status: "", label: "", of: "", sort: "run", down: "", models: "", item: "", base: "", ...Object.fromEntries(Object.keys(FLAGS).map((name) => [name, ""])), ...Object.fromEntries(Object.keys(RANGES).flatMap((name) => [[`${name}From`, ""], [`${name}To`, ""]])) };

  function cellOf(data, model, at) {
    const answers = data.answers[model][at];
    if (!answers) return made("td", { className: "cell", textContent: "–" });
    const score = data.score[model][at], status = data.statuses[data.status[model][at]], label = data.labels[data.label[model][at]];
    const [least, most] = data.models[model].within ?? [NaN, NaN];
    const kind = score <= least ? "wrong" : score >= most ? "right" : score > least ? "between" : "";
    const differs = data.differ[model][at] === 1;
    const agree = differs && label && data.agree[model][at] < answers ? ` (${data.agree[model][at]} of ${answers} ${data.answersAre}s)` : "";
    const cell = made("td", { className: `cell ${kind}` });
    if (!Number.isNaN(score)) cell.append(made("span", { className: "figure", textContent: figure(score) }), " ");
    if (status !== "ok") cell.append(made("span", { className: "badge", textContent: status.replaceAll("_", " ") }), " ");
    const path = data.path.length ? data.path[model][at] : "";
    if (differs && !path) cell.append(made("span", { className: "differs", title: `Its ${data.answersAre}s differ`, textContent: "≠", aria: { label: `its ${data.answersAre}s differ` } }), " ");
    if (path) cell.append(strip(data, path));
    else cell.append(made("span", { className: "label", title: `${label}${agree}`, textContent: `${label}${agree}` }));
    return cell;
  }

  function showItems(element, source) {
    let data = null, chosen = { ...EMPTY }, models = [], found = [], opened = null, active = 0, first = 0, last = 0, head = 0, sought = "";
    const id = (name) => `${element.id}-${name}`;
    const whose = element.closest("section")?.querySelector(".eyebrow")?.textContent;

    // ---- what the reader chooses, and its address ----

    const addressOf = () => {
      const fields = Object.entries(chosen).filter(([name, value]) => value !== EMPTY[name]);
      return `#${new URLSearchParams([["items", element.id], ...fields])}`;
    };
    const keep = (isNew) => history[isNew ? "pushState" : "replaceState"](null, "", addressOf());
    const asked = () => {
      const fields = new URLSearchParams(location.hash.slice(1));
      if (fields.get("items") !== element.id) return null;
      return { ...EMPTY, ...Object.fromEntries([...fields].filter(([name]) => Object.hasOwn(EMPTY, name))) };
    };

    function chooseModels() {
      const wanted = chosen.models === "" ? data.models.keys() : chosen.models.split(",").map(Number);
      models = [...new Set(wanted)].filter((model) => data.models[model]);
      if (chosen.models === "") models = models.slice(0, MODELS);
      if (!models.length) models = [0].filter((model) => data.models[model]);
      if (Object.hasOwn(ORDERS, chosen.sort) && !offered(data, ORDERS).some(([name]) => name === chosen.sort)) chosen.sort = "run";
      if (chosen.of !== "" && !data.models[Number(chosen.of)]) chosen.of = "";
    }

    // ---- controls ----

    function select(name, title, entries, act) {
      const box = made("select", { id: id(name) }, ...entries.map(([value, text]) => made("option", { value, textContent: text })));
      box.value = chosen[name];
      if (box.selectedIndex < 0) box.selectedIndex = 0;
      box.addEventListener("change", () => (act ?? change)({ [name]: box.value }));
      return made("div", {}, made("label", { htmlFor: box.id, textContent: title }), box);
    }

    function input(name, title, type) {
      const box = made("input", { id: id(name), type, value: chosen[name] });
      if (type === "number") box.step = "any";
      box.addEventListener("input", () => change({ [name]: box.value }));
      return made("div", {}, made("label", { htmlFor: box.id, textContent: title }), box);
    }

    function flag(name, title) {
      const box = made("input", { id: id(name), type: "checkbox", checked: chosen[name] === "1" });
      box.addEventListener("change", () => change({ [name]: box.checked ? "1" : "" }));
      return made("label", { className: "flag" }, box, ` ${title}`);
    }

    function modelChoice() {
      const boxes = data.models.map(({ name }, at) => {
        const box = made("input", { type: "checkbox", checked: models.includes(at), data: { model: at } });
        box.addEventListener("change", () => {
          const kept = box.checked ? [...models, at].sort((one, other) => one - other) : models.filter((each) => each !== at);
          if (!kept.length) box.checked = true;
          else change({ models: kept.join(",") }, true);
        });
        return made("label", { className: "flag" }, box, ` ${name}`);
      });
      const search = made("input", { type: "search", id: id("model-search"), value: sought });
      const seek = () => {
        sought = search.value;
        boxes.forEach((box) => { box.hidden = !box.textContent.toLowerCase().includes(sought.toLowerCase()); });
      };
      search.addEventListener("input", seek);
      seek();
      const finder = boxes.length > 12 ? made("div", {}, made("label", { htmlFor: search.id, textContent: "Find a model" }), search) : "";
      return made("details", { className: "model-choice" }, made("summary", { id: id("models") }), finder, made("div", { className: "flags" }, ...boxes));
    }

    function controls() {
      const labels = labelsOf(data);
      const statuses = data.statuses.filter((name, at) => data.status.some((row) => row.includes(at)));
      const all = ["", "All"];
      const orders = offered(data, { ...ORDERS, run: data.isInOrder ? ORDERS.run : "As first answered" });
      const sortable = data.models.flatMap(({ name }, at) => (models.includes(at) ? [[`m${at}`, `By ${name}`]] : []));
      const figures = Object.keys(data.figures).map((name) => [name, `${name}, most first`]);
      const flags = offered(data, { ...FLAGS, differ: alike(data, models).differ, trials: data.answersAre === "turn" ? "Turns differ" : FLAGS.trials });
      const ranges = offered(data, RANGES);
      const ofRanges = ranges.flatMap(([name, title]) => [input(`${name}From`, `${title} from`, "number"), input(`${name}To`, `${title} to`, "number")]);
      const more = made("details", { open: ranges.some(([name]) => chosen[`${name}From`] || chosen[`${name}To`]) || chosen.of !== "" }, made("summary", { textContent: "More filters" }), made("div", { className: "choose" }, select("of", "These hold for", [["", "Any model shown"], ...models.map((at) => [String(at), data.models[at].name])]), ...ofRanges));
      const clear = made("button", { type: "button", className: "small", textContent: "Clear filters" });
      clear.addEventListener("click", () => change({ ...EMPTY, models: chosen.models, item: chosen.item, base: chosen.base }, true));
      return made(
        "form",
        { className: "controls" },
        made("div", { className: "choose" },
          input("find", "Search", "search"),
          data.groups.length ? select("group", "Group", [all, ...data.groups.map((name) => [name, name])]) : "",
          statuses.length > 1 ? select("status", "Status", [all, ...statuses.map((name) => [name, name.replaceAll("_", " ")])]) : "",
          labels.length > 1 ? select("label", "Read as", [all, ...labels.map((name) => [name, name])]) : "",
          select("sort", "Order", [...orders, ...figures, ...sortable])),
        made("div", { className: "flags" }, ...flags.map((each) => flag(...each)), clear),
        made("div", { className: "flags" }, data.models.length > 1 ? modelChoice() : "", more),
      );
    }

    // ---- rows ----

    const scroller = made("div", { className: "table matrix", tabIndex: 0, aria: region("Items by models", whose) });
    const view = made("div", { className: "item", tabIndex: -1 });
    const told = made("p", { className: "sentence", aria: { live: "polite" } });
    const paper = made("p", { className: "note on-paper" });
    const above = made("div", {});

    const extra = () => keyOf(data, chosen.sort);
    const buttonAt = (place) => scroller.querySelector(`[data-place="${place}"] button`);
    // A list that is taller than a box can be is scrolled in proportion: the first pixel that is seen, of all.
    const whole = () => head + found.length * ROW;
    const stretch = () => Math.max(1, whole() - scroller.clientHeight) / Math.max(1, Math.min(whole(), TALLEST) - scroller.clientHeight);
    const seen = () => scroller.scrollTop * stretch();
    const page = () => Math.max(1, Math.floor((scroller.clientHeight - head) / ROW));

    function heads() {
      const head = (text, sort) => {
        const button = made("button", { type: "button", className: "sort", textContent: text });
        button.addEventListener("click", () => change({ sort, down: chosen.sort === sort && !chosen.down ? "1" : "" }, true));
        const cell = made("th", { scope: "col", title: text }, button);
        if (chosen.sort === sort) cell.setAttribute("aria-sort", chosen.down ? "descending" : "ascending");
        return cell;
      };
      const plain = (text, className = "") => made("th", { scope: "col", className, textContent: text });
      return made("tr", { ariaRowIndex: 1 }, plain("Item"), data.expected.length ? plain("Expected") : "", ...models.map((model) => head(data.models[model].name, `m${model}`)), extra() ? plain(extra()[1], "number") : "");
    }

    // An id that is a hash says less than what was asked.
    function names(at) {
      const [item, title] = [visible(data.items[at]), data.titles[at]];
      const [name, of] = title && /^[0-9a-f]{16}(-\d+)?$/.test(item) ? [title, item] : [item, title];
      return [made("span", { className: "name", textContent: name }), made("span", { className: "of", textContent: of })];
    }

    function line(place) {
      const at = found[place];
      const button = made("button", { type: "button", tabIndex: place === active ? 0 : -1, title: data.titles[at] }, ...names(at));
      button.addEventListener("click", () => { bring(place); open(data.items[at]); });
      const row = made(
        "tr",
        { ariaRowIndex: place + 2, className: data.items[at] === chosen.item ? "chosen" : "", data: { place } },
        made("th", { scope: "row" }, button),
        data.expected.length ? made("td", { className: "cell", title: data.expected[at] }, made("span", { className: "label", textContent: data.expected[at] })) : "",
        ...models.map((model) => cellOf(data, model, at)),
        extra() ? made("td", { className: "cell number", textContent: extra()[2](data, models, at) }) : "",
      );
      return row;
    }

    // Rows are made when they are seen. The table stands still in the box, its first row as far above the box's edge as it
    // is scrolled; of rows that are there already, those that stay are not made again. Many cells are made in several
    // frames, unless all are needed at once.
    function draw(isNew = false, isWhole = isNew) {
      const body = scroller.querySelector("tbody"), top = seen(), begin = Math.floor(top / ROW);
      const wanted = Math.min(found.length, begin + Math.ceil((scroller.clientHeight || 600) / ROW) + 1);
      const isFar = isNew || begin >= last || wanted <= first, most = isWhole ? Infinity : Math.ceil(AT_ONCE / (models.length + 2));
      const end = Math.min(wanted, (isFar ? begin : Math.max(begin, last)) + most);
      const lines = (from, to) => Array.from({ length: Math.max(0, to - from) }, (_, at) => line(from + at));
      const isFocused = body.contains(document.activeElement);
      if (isFar) body.replaceChildren(...lines(begin, end));
      else {
        for (const row of [...body.rows]) if (row.dataset.place < begin || row.dataset.place >= end) row.remove();
        body.prepend(...lines(begin, first));
        body.append(...lines(last, end));
      }
      [first, last] = [begin, end];
      if (end < wanted) setTimeout(() => draw()); // a frame that is asked for now would still be this one
      body.parentElement.style.top = `${begin * ROW - top}px`;
      if (isFocused && !body.contains(document.activeElement)) (buttonAt(active) ?? scroller).focus({ preventScroll: true });
    }

    // `top`: how far it is scrolled; `place`: the row that the keys are at.
    function table(top = 0, item = chosen.item) {
      const isFocused = scroller.querySelector("tbody")?.contains(document.activeElement);
      found = matching(data, chosen, models);
      active = item ? Math.max(0, found.indexOf(placeOf(data, item))) : 0;
      const box = made("table", { ariaRowCount: String(found.length + 1) }, made("caption", { textContent: "Items by models" }), made("thead", {}, heads()), made("tbody", {}));
      box.style.setProperty("--steps", Math.max(0, ...data.path.map((row) => row.reduce((most, path) => Math.max(most, path.length), 0))));
      box.style.setProperty("--columns", models.length + (data.expected.length ? 1 : 0) + (extra() ? 1 : 0));
      scroller.replaceChildren(made("div", {}, box));
      head = Math.ceil(box.getBoundingClientRect().height); // a part of a pixel more would need a scroll bar
      box.parentElement.style.height = `${Math.min(whole(), TALLEST)}px`;
      const part = data.share < 1 ? ` Only the first ${percent(data.share)} of the records are read so far: items, counts and scores are of these alone.` : "";
      told.textContent = (found.length ? `${several(found.length, "item")}${found.length < data.items.length ? ` of ${count(data.items.length)}` : ""}.` : "No item is like that.") + part;
      const summary = element.querySelector(`#${CSS.escape(id("models"))}`);
      if (summary) summary.textContent = `Models: ${count(models.length)} of ${count(data.models.length)}`;
      scroller.scrollTop = top;
      draw(true);
      if (isFocused) (buttonAt(active) ?? scroller).focus({ preventScroll: true });
    }

    function bring(place) {
      buttonAt(active)?.setAttribute("tabindex", -1);
      active = Math.min(Math.max(0, place), found.length - 1);
      const top = active * ROW, room = scroller.clientHeight - head - ROW;
      if (top < seen()) scroller.scrollTop = top / stretch();
      else if (top > seen() + room) scroller.scrollTop = Math.ceil((top - room) / stretch());
      draw(false, true);
      buttonAt(active)?.setAttribute("tabindex", 0);
    }

    // ---- an item ----

    function open(item) {
      chosen.item = item;
      keep(true);
      show(true);
    }

    async function show(isSought) {
      const item = chosen.item;
      for (const row of scroller.querySelectorAll("tr[data-place]")) row.className = data.items[found[row.dataset.place]] === item ? "chosen" : "";
      if (!item) { view.replaceChildren(); opened = null; return; }
      let details = opened?.item === item ? opened : null, problem = "";
      if (!details) {
        try {
          details = await source.details(item);
        } catch (error) {
          problem = `The item can’t be opened: ${error.message}`;
        }
        if (chosen.item !== item) return; // another was opened meanwhile
        opened = details;
      }
      const button = (text, act, isOff) => {
        const one = made("button", { type: "button", className: "small", textContent: text, disabled: isOff });
        one.addEventListener("click", act);
        return one;
      };
      const bases = [["", `From ${data.models[models[0]]?.name ?? ""}`], ...(details?.expected ? [["-1", "From the expected answer"]] : []), ...models.slice(1).map((at) => [String(at), `From ${data.models[at].name}`]), ["-2", "Mark nothing"]];
      const base = chosen.base === "" ? models[0] : Number(chosen.base);
      const marks = details && data.answersAre !== "turn" && (models.length > 1 || details.expected) ? select("base", "Mark what differs", bases, (fields) => { Object.assign(chosen, fields); keep(false); show(false); }) : "";
      const at = found.indexOf(placeOf(data, item));
      view.replaceChildren(
        made("h3", { className: "plain", textContent: visible(item) }),
        made("div", { className: "moves" }, button("Previous", () => go(-1), at <= 0), button("Next", () => go(1), at < 0 || at + 1 >= found.length), button("Close", close, false), marks),
        ...(details ? itemView(data, details, models, base, whose) : [made("p", { className: "note", textContent: problem || (placeOf(data, item) < 0 ? (data.share < 1 ? "No such item is among the records that are read so far." : "No such item is on this page.") : "What was asked and answered in this item is left out to keep the page small; `millstream view` shows it.") })]),
      );
      if (isSought) {
        view.focus({ preventScroll: true });
        view.scrollIntoView({ block: "start" });
      }
    }

    function go(by) {
      const at = found.indexOf(placeOf(data, chosen.item)) + by;
      if (at < 0 || at >= found.length) return;
      bring(at);
      open(data.items[found[at]]);
    }

    function close() {
      chosen.item = "";
      keep(true);
      show(false);
      scroller.scrollIntoView({ block: "nearest" });
      buttonAt(active)?.focus({ preventScroll: true });
    }

    // ---- all together ----

    function change(fields, isWhole = false) {
      Object.assign(chosen, fields);
      keep(false);
      chooseModels();
      if (isWhole) frame();
      table();
      if ("models" in fields) show(false);
    }

    function frame() {
      const focused = document.activeElement?.id, isOpen = element.querySelector(".model-choice")?.open;
      const form = controls();
      form.addEventListener("submit", (event) => event.preventDefault());
      const notes = (data.notes ?? []).map((text) => made("p", { className: "note", textContent: text }));
      const keys = made("p", { className: "note keys", textContent: "Keys: ↑ ↓ Page Home End move, Enter opens, ← → go to the items before and after, Esc closes, / searches." });
      const signs = data.path.length ? made("p", { className: "note signs" }, ...data.steps.flatMap((label) => [made("span", {}, letter(label), ` ${label}`), " "])) : "";
      above.replaceChildren(...notes, form, signs);
      // What is taken out and put in again loses the focus and its place.
      if (!element.contains(scroller)) element.replaceChildren(above, told, paper, scroller, keys, view);
      const choice = element.querySelector(".model-choice");
      if (choice && isOpen) choice.open = true;
      if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
    }

    scroller.addEventListener("scroll", () => draw(), { passive: true });
    // Keys go on from the row that has the focus, however it got it.
    scroller.addEventListener("focusin", ({ target }) => { active = Number(target.closest("tr[data-place]")?.dataset.place ?? active); });
    scroller.addEventListener("keydown", (event) => {
      const moves = { ArrowDown: 1, ArrowUp: -1, PageDown: page(), PageUp: -page(), Home: -found.length, End: found.length };
      if (!Object.hasOwn(moves, event.key) || event.target.closest("thead") || !found.length) return;
      event.preventDefault();
      bring(active + moves[event.key]);
      buttonAt(active)?.focus({ preventScroll: true });
    });
    element.addEventListener("keydown", (event) => {
      const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
      if (event.altKey || event.ctrlKey || event.metaKey || isTyping) return;
      if (event.key === "/") { event.preventDefault(); document.getElementById(id("find")).focus(); }
      if (event.key === "Escape" && chosen.item) close();
      if (view.contains(event.target) && !event.target.closest(".columns") && ["ArrowLeft", "ArrowRight"].includes(event.key)) go(event.key === "ArrowLeft" ? -1 : 1);
    });

    async function refresh() {
      const before = data, columns = typed(await source.columns());
      const [top, item] = [scroller.scrollTop, before?.items[found[active]]];
      data = columns;
      chooseModels();
      frame();
      table(top, item);
      if (before?.share < 1 && chosen.item) {
        opened = null; // answers of the rest belong to it
        await show(false);
      }
    }

    async function visit() {
      const fields = asked();
      if (!fields) {
        // Back to where the page was opened; a link to another section leaves the item open.
        if (!location.hash && chosen.item) {
          chosen.item = "";
          await show(false);
        }
        return;
      }
      chosen = fields;
      chooseModels();
      frame();
      table();
      if (chosen.item) bring(active);
      else (element.closest("section") ?? element).scrollIntoView();
      await show(Boolean(chosen.item));
    }

    async function begin() {
      try {
        await refresh();
        element.dataset.state = "open";
        await visit();
      } catch (error) {
        element.replaceChildren(made("p", { className: "note", textContent: `The items can’t be shown in this browser: ${error.message}` }));
      }
    }
    // On paper the first rows stand there whole, without a box to scroll.
    const print = () => {
      scroller.querySelector("tbody")?.replaceChildren(...found.slice(0, ON_PAPER).map((_, place) => line(place)));
      paper.textContent = found.length > ON_PAPER ? `On paper: the first ${ON_PAPER}.` : "";
    };
    const ending = new AbortController(), { signal } = ending;
    addEventListener("popstate", () => { if (data) visit(); }, { signal });
    // The number of pages is computed before the medium changes.
    addEventListener("beforeprint", print, { signal });
    matchMedia("print").addEventListener("change", ({ matches }) => (matches ? print() : draw(true)), { signal });
    return { ready: begin(), refresh, close: () => ending.abort() };
  }

  window.showItems = showItems;

  // In a report the data stand in the page.
  for (const element of document.querySelectorAll(".items[data-columns]")) {
    let texts = null;
    const read = (name) => unpacked(document.getElementById(element.dataset[name]).textContent);
    const source = {
      columns: () => read("columns"),
      details: async (item) => {
        texts ??= await read("texts");
        return Object.hasOwn(texts, item) ? texts[item] : null;
      },
    };
    const isAsked = () => new URLSearchParams(location.hash.slice(1)).get("items") === element.id;
    let isBegun = false;
    const begin = () => { if (!isBegun) { isBegun = true; showItems(element, source); } };
    if (isAsked()) begin();
    else {
      whenNear(element, begin);
      // Far from the reader too, for paper and pictures of the whole page: after what is near.
      addEventListener("load", () => setTimeout(begin, 500));
    }
    addEventListener("hashchange", () => { if (isAsked()) begin(); });
  }
}
