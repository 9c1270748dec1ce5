// The interactive parts of the page: readers sort and filter tables, use charts, choose a trial. Without this script, the
// page can be read in full. No HTML is made from strings: a text always stays a text.
"use strict";

const words = json("words");

function json(id) {
  return JSON.parse(document.getElementById(id).textContent);
}

function make(tag, properties, ...children) {
  const element = Object.assign(document.createElement(tag), properties);
  element.append(...children);
  return element;
}

/** A message as "{shown} of {all} rows", with values in place of its fields. */
function fill(message, fields) {
  return message.replace(/\{(\w+)\}/g, (_, name) => fields[name]);
}

let controls = 0;

function labelled(word, control) {
  control.id = `control-${++controls}`;
  return make("span", {}, make("label", { htmlFor: control.id, textContent: word }), control);
}

// Tables

/** The text of a cell, without its notes. */
function said(cell) {
  const parts = [...cell.childNodes].filter((node) => !node.matches?.("small, .hidden"));
  return parts.map((node) => node.textContent).join("").trim();
}

/** The exact number of a cell; NaN for a cell without a number. */
function number(cell) {
  return parseFloat(cell.querySelector("data")?.value);
}

const collator = new Intl.Collator(document.documentElement.lang, { numeric: true });

/** Rows in the order of a column: by number if the column has numbers, else by text; empty cells come last. */
function sorted(rows, column, direction) {
  const numeric = rows.some((row) => row.cells[column].querySelector("data"));
  const keyed = rows.map((row) => {
    const cell = row.cells[column];
    const key = numeric ? number(cell) : said(cell);
    return { row, key, absent: numeric ? Number.isNaN(key) : cell.matches(".absent") || key === "" || key === "—" };
  });
  keyed.sort((first, second) => {
    if (first.absent || second.absent) return first.absent - second.absent;
    return direction * (numeric ? first.key - second.key : collator.compare(first.key, second.key));
  });
  return keyed.map(({ row }) => row);
}

/** Turns column headers into buttons: clicks sort ascending, then descending, then restore the original order. */
function makeSortable(table) {
  const body = table.tBodies[0];
  const original = [...body.rows];
  if (original.length < 3) return;
  const heads = [...table.tHead.rows].at(-1).querySelectorAll("th");
  for (const head of heads) {
    const button = make("button", { type: "button" }, ...head.childNodes);
    head.append(button);
    button.addEventListener("click", () => {
      const next = { ascending: "descending", descending: "" }[head.getAttribute("aria-sort")] ?? "ascending";
      for (const other of heads) other.removeAttribute("aria-sort");
      if (next) head.setAttribute("aria-sort", next);
      const direction = next === "descending" ? -1 : 1;
      body.append(...(next ? sorted(original, head.cellIndex, direction) : original));
    });
  }
}

/** Adds a choice above the table for each column that filters its rows. */
function makeFilterable(table) {
  const columns = (table.dataset.filters ?? "").split(",").filter(Boolean).map(Number);
  if (!columns.length) return;
  const rows = [...table.tBodies[0].rows];
  const heads = [...table.tHead.rows].at(-1).cells;
  const count = make("output", {});
  const choices = columns.map((column) => {
    const values = [...new Set(rows.map((row) => said(row.cells[column])))];
    const select = make("select", {}, new Option(words.all, ""), ...values.map((value) => new Option(value, `=${value}`)));
    select.addEventListener("change", show);
    return { column, select };
  });

  function show() {
    for (const row of rows) {
      row.hidden = !choices.every(({ column, select }) => !select.value || select.value === `=${said(row.cells[column])}`);
    }
    count.textContent = fill(words.rows, { shown: rows.filter((row) => !row.hidden).length, all: rows.length });
  }

  const labels = choices.map(({ column, select }) => labelled(said(heads[column]), select));
  table.closest(".scroll").before(make("div", { className: "controls" }, ...labels, count));
  show();
}

// Charts

const ONLY_ERRORS = 1; // without warnings of empty layers, which are normal
const LIVE = {
  mode: "vega-lite",
  renderer: "svg",
  ast: true,
  actions: false,
  defaultStyle: false,
  tooltip: { disableDefaultStyle: true },
  logLevel: ONLY_ERRORS,
};

/** The value of a JSON text that was packed by gzip and base64. */
async function unpacked(text) {
  const bytes = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
  return new Response(stream).json();
}

let specifications;
let turn = Promise.resolve();

/** When the browser is idle, or soon: on a busy machine it may never be. */
function idle() {
  if (!window.requestIdleCallback) return new Promise((resolve) => setTimeout(resolve));
  return new Promise((resolve) => requestIdleCallback(resolve, { timeout: 200 }));
}

/** Draws a chart into its place, chart after chart, when the browser is idle; until then the place does not change. */
function draw(place, specification) {
  turn = turn.then(idle).then(async () => {
    const stage = make("div", {});
    const { view } = await window.vegaEmbed(stage, await specification(), LIVE);
    place.replaceChildren(stage);
    place.setAttribute("role", "group");
    // Screen readers get the caption and the tables in place of each mark and axis.
    for (const part of place.querySelectorAll(".role-axis, .role-mark")) part.setAttribute("aria-hidden", "true");
    makeLegendsOperable(place, view);
    place.classList.add("live");
  }).catch((error) => console.error(error)); // A chart that cannot be drawn is no reason not to draw the next.
}

/** Makes legend entries buttons for the keyboard too; chosen entries are pressed. */
function makeLegendsOperable(place, view) {
  const stores = Object.keys(view.getState({ data: (name) => name?.endsWith("_store"), signals: () => false }).data);
  const labels = [...place.querySelectorAll(".role-legend-label text")];
  const tell = () => {
    const chosen = stores.flatMap((name) => view.data(name)).flatMap((row) => row.values);
    for (const label of labels) label.setAttribute("aria-pressed", chosen.includes(label.__data__.datum.value));
  };
  for (const hidden of place.querySelectorAll("[aria-hidden]:has(.role-legend-label)")) hidden.removeAttribute("aria-hidden");
  for (const label of labels) {
    label.setAttribute("tabindex", "0");
    label.setAttribute("role", "button");
    label.addEventListener("keydown", (event) => {
      if (event.key !== "Enter" && event.key !== " ") return;
      event.preventDefault();
      label.dispatchEvent(new MouseEvent("click", { bubbles: true }));
    });
  }
  place.addEventListener("click", () => view.runAsync().then(tell));
  tell();
}

const begun = new Set();

/** Draws the live chart of a place, once. */
function enliven(place) {
  if (begun.has(place)) return;
  begun.add(place);
  specifications ??= unpacked(document.getElementById("charts").textContent);
  draw(place, async () => (await specifications)[place.dataset.chart]);
}

/** Draws charts when they are nearly in view, and all charts of a section when it is opened: so they can be printed. */
function watchCharts(places) {
  const near = new IntersectionObserver((entries) => {
    for (const { target } of entries.filter((entry) => entry.isIntersecting)) {
      near.unobserve(target);
      enliven(target);
    }
  }, { rootMargin: "400px" });
  for (const place of places) near.observe(place);
  for (const details of document.querySelectorAll("details")) {
    details.addEventListener("toggle", () => {
      if (details.open) details.querySelectorAll("[data-chart]").forEach(enliven);
    });
  }
}

// Telemetry of any trial

/** The chart of a trial: with the trial's data, and the panels for which it has data. */
function chartOf(trial, specification) {
  const datasets = { phases: trial.phases.map(([name, begin_s, end_s]) => ({ name, begin_s, end_s })) };
  const panels = specification.vconcat.filter(({ name }) => {
    const rows = Object.entries(trial.devices).flatMap(([device, quantities]) =>
      (quantities[name] ?? []).map((value, index) => ({ elapsed_s: (index + 0.5) * trial.step_s, device, value })),
    );
    // A bin without a reading is no gap: lines go on to the next reading.
    datasets[name] = rows.filter(({ value }) => value !== null);
    return datasets[name].length > 0;
  });
  return { ...specification, vconcat: panels, datasets };
}

async function makeExplorer(figure) {
  const { specification, trials } = await unpacked(figure.querySelector("script").textContent);
  if (!trials.length) return;
  const select = make("select", {}, ...trials.map((trial) => new Option(trial.label, trial.id)));
  const options = [...select.options];
  const place = make("div", { className: "chart" });
  const scroll = make("div", { className: "scroll", tabIndex: 0, role: "group" }, place);
  const controls = make("div", { className: "controls" }, labelled(words.trial, select));

  const show = () => {
    const trial = trials.find(({ id }) => id === select.value);
    if (!trial) return;
    scroll.setAttribute("aria-label", trial.label);
    draw(place, async () => chartOf(trial, specification));
  };
  select.addEventListener("change", show);

  if (trials.length > 12) {
    const search = make("input", { type: "search" });
    const count = make("output", {});
    search.addEventListener("input", () => {
      const wanted = search.value.toLowerCase().split(/\s+/);
      const matches = options.filter((option) => wanted.every((word) => option.text.toLowerCase().includes(word)));
      select.replaceChildren(...matches);
      count.textContent = fill(words.matches, { shown: matches.length, all: options.length });
      show();
    });
    controls.prepend(labelled(words.search, search));
    controls.append(count);
  }
  figure.querySelector(".note").replaceWith(controls, scroll);
  new IntersectionObserver((entries, near) => {
    if (!entries.some((entry) => entry.isIntersecting)) return;
    near.disconnect();
    show();
  }, { rootMargin: "400px" }).observe(figure);
}

// The page

/** Takes regions that do not scroll out of the order of the tab key. */
function watchScrolling(regions) {
  const watch = new ResizeObserver((entries) => {
    for (const region of new Set(entries.map(({ target }) => target.closest(".scroll")))) {
      const scrolls = region.scrollWidth > region.clientWidth || region.scrollHeight > region.clientHeight;
      region.tabIndex = scrolls ? 0 : -1;
      region.classList.toggle("wide", region.scrollWidth > region.clientWidth + 1);
    }
  });
  for (const region of regions) {
    watch.observe(region);
    watch.observe(region.firstElementChild);
  }
}

/** Marks the section that the reader is in, in the contents. */
function watchReading(sections) {
  const links = new Map([...document.querySelectorAll(".contents a")].map((link) => [link.hash.slice(1), link]));
  const watch = new IntersectionObserver((entries) => {
    for (const { target, isIntersecting } of entries) {
      const link = links.get(target.getAttribute("aria-labelledby"));
      if (isIntersecting) link.setAttribute("aria-current", "true");
      else link.removeAttribute("aria-current");
    }
  }, { rootMargin: "-20% 0px -79% 0px" });
  for (const section of sections) watch.observe(section);
}

/** Opens what is folded around the place that the address names, and shows the place. */
function showPlace() {
  const place = document.querySelector(`[id="${CSS.escape(location.hash.slice(1))}"]`);
  if (!place) return;
  for (let details = place.closest("details"); details; details = details.parentElement.closest("details")) {
    details.open = true;
  }
  place.scrollIntoView();
}

/** Opens everything, prints it once every chart is drawn, and folds it again. */
async function printAll() {
  const folded = [...document.querySelectorAll("details:not([open])")];
  for (const details of folded) details.open = true;
  document.querySelectorAll("[data-chart]").forEach(enliven);
  await turn;
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
  }, { once: true });
  print();
}

/** Adds buttons to the contents: to open or close all sections, and to print all. */
function makeFoldable(contents) {
  const sections = [...document.querySelectorAll(".folded")];
  if (!sections.length) return;
  const toggle = make("button", { type: "button" });
  const say = () => {
    toggle.textContent = sections.every(({ open }) => open) ? words.close : words.open;
  };
  toggle.addEventListener("click", () => {
    const open = !sections.every((section) => section.open);
    for (const section of sections) section.open = open;
    say();
  });
  for (const section of sections) section.addEventListener("toggle", say);
  const all = make("button", { type: "button", textContent: words.print });
  all.addEventListener("click", printAll);
  contents.append(...[toggle, all].map((button) => make("li", {}, button)));
  say();
  addEventListener("hashchange", showPlace);
  // The address does not change where a reader asks for the same place again.
  document.addEventListener("click", ({ target }) => {
    if (target.closest(`a[href^="#"]`)?.hash === location.hash) showPlace();
  });
  showPlace();
}

for (const table of document.querySelectorAll("table")) {
  makeSortable(table);
  makeFilterable(table);
}
watchCharts(document.querySelectorAll("[data-chart]"));
for (const figure of document.querySelectorAll(".explorer")) makeExplorer(figure);
watchScrolling(document.querySelectorAll(".scroll"));
watchReading(document.querySelectorAll("main section"));
makeFoldable(document.querySelector(".contents ul"));
