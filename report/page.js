// The live half of the report: figures that answer to the pointer. Without it the page still shows every table and a
// still picture of every figure. Uses what elements.js has.
"use strict";

function whenNear(element, act) {
  const watcher = new IntersectionObserver(
    (entries) => {
      if (entries.some((entry) => entry.isIntersecting)) {
        watcher.disconnect();
        act();
      }
    },
    { rootMargin: "600px" },
  );
  watcher.observe(element);
}

// ---- tables ----

// A number as the page writes it; null for a dash, which stands last in any order.
function shownNumber(text) {
  const number = Number.parseFloat(text.replace(/[,<\s$]/g, "").replace("\u2212", "-"));
  return Number.isNaN(number) ? null : number;
}

function sortBy(table, at, isNumber, isDown) {
  const rows = [...table.tBodies[0].rows].map((row) => {
    const cell = row.cells[at];
    const text = cell.dataset.value ?? cell.textContent;
    return { row, value: isNumber ? shownNumber(text) : text };
  });
  rows.sort((one, other) => {
    if (one.value === null || other.value === null) return (one.value === null) - (other.value === null);
    const order = isNumber ? one.value - other.value : one.value.localeCompare(other.value, "en", { numeric: true });
    return isDown ? -order : order;
  });
  table.tBodies[0].append(...rows.map(({ row }) => row));
}

function makeSortable(table) {
  const heads = [...table.tHead.rows[0].cells];
  heads.forEach((head, at) => {
    const isNumber = head.classList.contains("number");
    const button = made("button", { type: "button", className: "sort", title: "Sort by this column" }, ...head.childNodes);
    button.addEventListener("click", () => {
      const before = head.getAttribute("aria-sort");
      // Numbers: the highest first; names: from A on.
      const isDown = before === null ? isNumber : before === "ascending";
      heads.forEach((other) => other.removeAttribute("aria-sort"));
      head.setAttribute("aria-sort", isDown ? "descending" : "ascending");
      sortBy(table, at, isNumber, isDown);
    });
    head.append(button);
  });
}

for (const table of document.querySelectorAll(".sortable > table")) makeSortable(table);

async function unpacked(text) {
  const signs = atob(text), bytes = new Uint8Array(signs.length);
  for (let at = 0; at < signs.length; at++) bytes[at] = signs.charCodeAt(at);
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

// Every table's whole contents are in the page, as its CSV file has them.
let files;
async function csvOf(name) {
  files ??= await unpacked(byId("csv-data").textContent);
  return files[name];
}

async function copyText(text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    // Where a page may not reach the clipboard by itself, a selected text may be copied.
    const area = made("textarea", { value: text, readOnly: true });
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
}

function saveText(text, name) {
  const address = URL.createObjectURL(new Blob([text], { type: "text/csv" }));
  made("a", { href: address, download: name.split("/").pop() }).click();
  setTimeout(() => URL.revokeObjectURL(address), 1000);
}

function addCsvButtons(place) {
  const name = place.dataset.csv;
  const title = place.parentElement.querySelector("caption").textContent;
  const copy = made("button", { type: "button", className: "small", textContent: "Copy as CSV" });
  const save = made("button", { type: "button", className: "small", textContent: "Save as CSV" });
  for (const button of [copy, save]) button.ariaLabel = `${button.textContent}: ${title}`;
  copy.addEventListener("click", async () => {
    await copyText(await csvOf(name));
    copy.textContent = "Copied";
    setTimeout(() => { copy.textContent = "Copy as CSV"; }, 2000);
  });
  save.addEventListener("click", async () => saveText(await csvOf(name), name));
  place.querySelector("span").replaceWith(copy, save);
}

for (const place of document.querySelectorAll("[data-csv]")) addCsvButtons(place);

// ---- figures ----

// Room for the labels of an axis beside a plot whose width is its own, without them.
const LABELS = 170;

// The title of an axis in lines of some twenty-five letters.
function inLines(title) {
  const lines = [""];
  for (const word of title.split(" ")) {
    if (lines.at(-1) && lines.at(-1).length + word.length > 25) lines.push(word);
    else lines.push(`${lines.pop()} ${word}`.trim());
  }
  return lines;
}

// A specification for a narrow screen: as wide as the screen, legends below it, panels below each other.
function fitted(wide, room, columns) {
  const own = { orient: "bottom", columns, columnPadding: 12, labelLimit: room / columns - 30, gradientLength: room / 2 };
  const spec = JSON.parse(JSON.stringify(wide), (key, value) => {
    if (key === "legend" && value) return { ...value, ...own };
    return key === "x" && typeof value?.title === "string" ? { ...value, title: inLines(value.title) } : value;
  });
  const within = Math.max(room - LABELS, 120);
  if (spec.facet?.column) spec.facet = { row: spec.facet.column };
  if (spec.columns) spec.columns = 1;
  if (spec.facet) spec.spec.width = Math.min(spec.spec.width, within);
  else if (typeof spec.width === "number") spec.width = spec.autosize?.type === "fit-x" ? room : Math.min(spec.width, within);
  return spec;
}

// A specification for a window of a middle width: a single plot loses what it lacks, so that its letters keep their size.
function narrowed(wide, lacking) {
  const width = wide.width - lacking;
  return width >= wide.width / 2 ? { ...wide, width } : wide;
}

// Whether a word of a picture has no room: it is shortened, or reaches beyond the picture.
function isCrowded(picture) {
  const whole = picture.getBoundingClientRect();
  return [...picture.querySelectorAll("text")].some((text) => {
    const { left, right, top, bottom, width } = text.getBoundingClientRect();
    const isOut = left < whole.left - 1 || right > whole.right + 1 || top < whole.top - 1 || bottom > whole.bottom + 1;
    return width && (isOut || text.textContent.includes("…"));
  });
}

async function embed(live, spec) {
  // The interpreter (ast) needs no eval, so the page's policy can forbid it.
  await window.vegaEmbed(live, spec, {
    ast: true,
    actions: false,
    renderer: "svg",
    defaultStyle: false,
    logLevel: 1, // errors alone
    tooltip: { disableDefaultStyle: true },
  });
  return live.querySelector("svg");
}

async function drawLive(figure, wide) {
  const plot = figure.querySelector(".plot");
  const live = made("div", { className: "live" });
  plot.append(live);
  const room = plot.clientWidth;
  const own = Number(plot.querySelector(".still svg").getAttribute("width"));
  const isWider = own > room, isSmall = matchMedia("(max-width: 40rem)").matches;
  let picture = null;
  if (isWider && isSmall) {
    // Drawn where it is not seen, since only a drawing can be measured: two columns in the legend, else one.
    live.classList.add("is-tried");
    for (const columns of [2, 1]) {
      picture = await embed(live, fitted(wide, room, columns));
      picture.style.minWidth = "0";
      if (!isCrowded(picture) && picture.getBoundingClientRect().width <= room + 1) break;
      picture = null;
    }
    live.classList.remove("is-tried");
  }
  picture ??= await embed(live, isWider && !isSmall ? narrowed(wide, own - room) : wide);
  // One picture with a name to who can't see it: its numbers are in the table below.
  picture.setAttribute("role", "img");
  picture.setAttribute("aria-label", plot.getAttribute("aria-label"));
  for (const part of picture.querySelectorAll("[role]")) part.removeAttribute("role");
  for (const part of picture.querySelectorAll("[aria-roledescription]")) part.removeAttribute("aria-roledescription");
  for (const part of picture.querySelectorAll("g [aria-label]")) part.removeAttribute("aria-label");
  plot.classList.add("is-live");
}

for (const [id, spec] of Object.entries(JSON.parse(byId("figure-data").textContent))) {
  whenNear(byId(id), () => drawLive(byId(id), spec));
}

// ---- paper and small screens ----

const contents = document.querySelector(".contents");

// The contents say where one is: the last section whose beginning has passed the upper third of the window.
const links = new Map([...contents.querySelectorAll(":scope > ol > li > a")].map((link) => [link.hash.slice(1), link]));
function markPlace() {
  const begun = [...links.keys()].map(byId).filter((each) => each && each.getBoundingClientRect().top < innerHeight / 3);
  const here = begun.at(-1)?.id ?? links.keys().next().value;
  for (const [name, link] of links) {
    if (name === here) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}
let isAsked = false;
function markSoon() {
  if (isAsked) return;
  isAsked = true;
  requestAnimationFrame(() => { isAsked = false; markPlace(); });
}
addEventListener("scroll", markSoon, { passive: true });
// What is drawn later moves the sections without a scroll.
new ResizeObserver(markSoon).observe(document.querySelector("main"));
markPlace();

if (!window.matchMedia("(min-width: 68rem)").matches) contents.open = false;
