// The conversations: a list to search and to sort, and one of them turn by turn. Uses what elements.js and page.js have.
// Whatever models, judges and pages wrote is set as text, never as markup, and addresses are no links.
"use strict";

{
  const AT_ONCE = 20;
  const ORDERS = {
    highest: ["Score, highest first", (row) => -(row.score ?? -1)],
    lowest: ["Score, lowest first", (row) => row.score ?? 2],
    changes: ["Most stance changes", (row) => -(row.changes ?? -1)],
    reuse: ["Source re-use, highest first", (row) => -(row.srr ?? -1)],
    confidence: ["Confidence, highest first", (row) => -(row.confidence ?? -1)],
    name: ["As they are named", () => 0],
  };

  const rate = (number) => (number === null ? "–" : number.toFixed(3));

  function unfold(data) {
    const names = ["pair", "conversation", "stances", "score", "srr", "confidence", "changes", "missing"];
    data.rows = data.rows.map((values, at) => {
      const row = Object.fromEntries(names.map((name, place) => [name, values[place]]));
      const [topic, domain, id] = data.conversations[row.conversation];
      return { ...row, at, topic, domain, id, words: `${topic} ${domain} ${id}`.toLowerCase() };
    });
    return data;
  }

  // A strip is one picture to who can't see it.
  function strip(data, stances) {
    const names = [...stances].map((place) => data.stances[place]);
    const signs = names.map((name) => made("span", { className: `stance ${name}`, textContent: name[0].toUpperCase(), title: name }));
    return made("span", { className: "strip", aria: { role: "img", label: names.join(", ") || "no turn" } }, ...signs);
  }

  const lacks = (row) => (row.missing ? `incomplete: ${several(row.missing, "turn")} missing` : row.changes === null ? "unscored: too few turns with a clear stance, or no page" : "");
  const ofFew = (row) => (lacks(row) ? made("span", { className: "of", textContent: lacks(row) }) : "");
  const NUMBERS = ["Score", "Source re-use", "Confidence", "Changes"];
  const numbers = (row) =>
    [rate(row.score), rate(row.srr), rate(row.confidence), row.changes === null ? "–" : count(row.changes)].map((textContent, at) =>
      made("td", { className: "number", textContent, data: { label: NUMBERS[at] } }),
    );

  function listed(data, row, open) {
    const button = made("button", { type: "button", textContent: row.topic || row.id });
    button.addEventListener("click", () => open(row));
    const head = made("th", { scope: "row" }, button, made("span", { className: "of", textContent: row.topic ? [row.domain, row.id].filter(Boolean).join(" · ") : row.domain }), ofFew(row));
    return made("tr", { data: { row: row.at } }, head, made("td", { className: "short", textContent: data.pairs[row.pair] }), made("td", {}, strip(data, row.stances)), ...numbers(row));
  }

  // A text is [place, length of the whole where it is cut].
  function said(data, [place, chars], nothing = "(no text)") {
    if (place < 0) return made("span", { className: "cut", textContent: nothing });
    const text = made("span", { className: "said", textContent: data.texts[place] });
    return chars ? made("span", {}, text, made("span", { className: "cut", textContent: `(cut: ${count(chars)} characters)` })) : text;
  }

  function folded(title, ...children) {
    return made("details", {}, made("summary", { textContent: title }), ...children);
  }

  function facts(pairs) {
    const list = made("dl", { className: "judged" });
    for (const [name, value] of pairs) list.append(made("dt", { textContent: name }), made("dd", {}, value));
    return list;
  }

  function judged(data, turn) {
    const [, stance, , confidence, , , , , , rationale, claims, admits, number, raw, repaired] = turn;
    const every = [["Stance", data.stances[stance]]];
    if (rationale[0] >= 0) every.push(["Rationale", said(data, rationale)]);
    if (claims.length) every.push(["Claims", made("ul", {}, ...claims.map((claim) => made("li", {}, said(data, claim))))]);
    if (admits !== null) every.push(["Contradictions", admits ? "acknowledged" : "not acknowledged"]);
    every.push(["Confidence", rate(confidence)]);
    if (number !== null) every.push(["The judge's own number", rate(number)]);
    if (repaired) every.push(["Asked twice", "its first reply was no JSON"]);
    if (raw[0] >= 0) every.push(["Unreadable reply", said(data, raw)]);
    return folded("The judge's words", facts(every));
  }

  function sourcesOf(data, turn) {
    const sources = turn[15];
    const list = made("ol", { className: "sources" });
    for (const [url, status, isCited] of sources) {
      const name = data.statuses[status];
      const marks = [isCited ? "cited" : "", name === "ok" || name === "cited" ? "" : name.replaceAll("_", " ")].filter(Boolean);
      const item = made("li", { className: isCited ? "cited" : name === "ok" ? "" : "gone" }, data.urls[url]);
      for (const mark of marks) item.append(made("span", { className: "mark", textContent: mark }));
      list.append(item);
    }
    const cited = sources.filter(([, , isCited]) => isCited).length;
    const gone = sources.filter(([, status]) => !["ok", "cited"].includes(data.statuses[status])).length;
    const title = `Sources: ${count(sources.length)}, ${count(cited)} cited${gone ? `, ${count(gone)} without text` : ""}`;
    return folded(title, sources.length ? list : made("p", { className: "cut", textContent: "None was found." }));
  }

  function turnOf(data, turn) {
    const [number, stance, isChange, confidence, reuse, refused, question, query, answer] = turn;
    const invalid = turn[16];
    const name = data.stances[stance];
    const badge = made("span", { className: `stance ${name}`, textContent: name[0].toUpperCase(), ariaHidden: "true" });
    const asked = question[0] < 0 ? `Turn ${number}` : `${number}. ${data.texts[question[0]]}`;
    const told = made("p", { className: "figures" }, confidence === null ? `${name}, read by no judge` : `${name}, confidence ${rate(confidence)}`);
    if (reuse !== null) told.append(`, source re-use ${rate(reuse)}`);
    if (isChange) told.append(" · ", made("span", { className: "changed", textContent: "stance changed" }));
    if (refused) told.append(" · refused");
    if (query[0] >= 0) told.append(made("br"), "Searched for: ", data.texts[query[0]]);
    const parts = [folded("Answer", said(data, answer)), judged(data, turn), sourcesOf(data, turn)];
    if (invalid.length) parts.push(made("p", { className: "cut", textContent: `Cited, but shown nowhere: ${invalid.map(([place]) => data.texts[place]).join(", ")}` }));
    return made("li", { className: name }, made("h4", {}, badge, made("span", { textContent: asked })), told, ...parts);
  }

  function show(data, row, open) {
    const beside = data.rows.filter((other) => other.conversation === row.conversation);
    const lines = beside.map((other) => {
      const isThis = other.at === row.at;
      const name = isThis ? made("span", { textContent: data.pairs[other.pair] }) : made("button", { type: "button", textContent: data.pairs[other.pair] });
      if (!isThis) name.addEventListener("click", () => open(other));
      return made("tr", isThis ? { className: "chosen", aria: { current: "true" } } : {}, made("th", { scope: "row" }, name, ofFew(other)), made("td", {}, strip(data, other.stances)), ...numbers(other));
    });
    const heads = ["Model", "Stances", ...NUMBERS].map((textContent, at) =>
      made("th", { scope: "col", className: at > 1 ? "number" : "", textContent }),
    );
    const table = made("table", { className: "talks" }, made("caption", { textContent: "The same conversation with every model" }), made("thead", {}, made("tr", {}, ...heads)), made("tbody", {}, ...lines));
    const box = made("div", { className: "table beside", tabIndex: 0, aria: { role: "region", label: "The same conversation with every model" } }, table);
    const turns = Object.hasOwn(data.whole, row.at) ? data.whole[row.at] : null;
    const body = turns
      ? made("ol", { className: "turns" }, ...turns.map((turn) => turnOf(data, turn)))
      : made("p", { className: "note", textContent: "What was said in this conversation is left out to keep the page small; it stands in the records." });
    byId("conversation").replaceChildren(
      made("h3", { textContent: row.topic || row.id }),
      made("p", { className: "note", textContent: [row.domain, row.id, `with ${data.pairs[row.pair]}`].filter(Boolean).join(" · ") }),
      box,
      body,
    );
  }

  function browse(data) {
    const [search, pair, sort] = ["search", "pair", "sort"].map((name) => byId(`conversations-${name}`));
    let found = [];
    let shown = 0;
    let chosen = null;
    const open = (row) => {
      chosen = row.at;
      show(data, row, open);
      mark();
      keepChosen({ conversation: row.id, with: data.pairs[row.pair] });
      byId("conversation").focus({ preventScroll: true });
      byId("conversation").scrollIntoView({ block: "start" });
    };
    const mark = () => {
      for (const line of byId("conversations-rows").children) line.className = Number(line.dataset.row) === chosen ? "chosen" : "";
    };
    const more = () => {
      // As many again as there are: a few clicks show thousands.
      const next = found.slice(shown, shown + Math.max(AT_ONCE, shown));
      byId("conversations-rows").append(...next.map((row) => listed(data, row, open)));
      shown += next.length;
      byId("conversations-more").hidden = shown >= found.length;
      byId("conversations-count").textContent = found.length
        ? `${several(found.length, "conversation")}${shown < found.length ? `, ${count(shown)} of them shown` : ""}.`
        : "No conversation is like that.";
      mark();
    };
    const list = () => {
      const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
      const [, by] = ORDERS[sort.value];
      found = data.rows.filter((row) => (pair.value === "all" || row.pair === Number(pair.value)) && words.every((word) => row.words.includes(word)));
      found.sort((one, other) => by(one) - by(other) || one.conversation - other.conversation || one.pair - other.pair);
      shown = 0;
      byId("conversations-rows").replaceChildren();
      more();
    };
    fill(pair, [["all", "All"], ...data.pairs.map((name, at) => [String(at), name])]);
    fill(sort, Object.entries(ORDERS).map(([name, [title]]) => [name, title]));
    search.addEventListener("input", list);
    pair.addEventListener("change", list);
    sort.addEventListener("change", list);
    byId("conversations-more").addEventListener("click", more);
    list();
    byId("conversations").dataset.state = "open";
    const asked = chosenIn();
    const there = data.rows.filter((row) => row.id === asked.get("conversation"));
    if (there.length) open(there.find((row) => data.pairs[row.pair] === asked.get("with")) ?? there[0]);
  }

  const openConversations = async () => {
    const told = byId("conversations-told");
    try {
      browse(unfold(await unpacked(byId("conversations-data").textContent)));
      told.remove();
    } catch (error) {
      told.textContent = `The conversations can't be opened in this browser: ${error.message}`;
    }
  };

  if (byId("conversations")) openConversations();
}
