// Steps through the iterations of a society: the grid is drawn from numbers that are fetched once, the chosen agent is
// asked for when the slider rests. A society that goes on is followed.

import { setParameter } from "../charts.js";
import { closest, find, findAll, parsed } from "../dom.js";
import { t } from "../words.js";
import { page } from "./ask.js";
import { put, putChart } from "./put.js";
import { seldom } from "./seldom.js";
import { cellOf, isChange, legend, neighbour, values } from "./society-cells.js";
import { follow, show as showFigures, teller } from "./watch.js";

/** @typedef {import("./society-cells.js").Part} Part */

const REST = 150; // ms without a step, after which the chosen agent is asked for
const PACE = 700; // ms between two steps of what plays by itself
const PAUSE = 1500; // ms between two looks at a page that has changed
const SVG = "http://www.w3.org/2000/svg";

const bar = find("#replay", document, HTMLFormElement);
const slider = find("#iteration", bar, HTMLInputElement);
const where = find("#where", bar, HTMLOutputElement);
const play = find("#play", bar);
const grid = find("#grid", document, HTMLTableElement);
const shows = find("#shows", document, HTMLSelectElement);
const select = find("#agent", document, HTMLSelectElement);
const links = find("#links", document, SVGSVGElement);
const buttons = findAll("button", grid, HTMLButtonElement);
const cells = buttons.map((button) => /** @type {HTMLTableCellElement} */ (button.parentElement));
const called = buttons.map((button) => button.dataset.called ?? "");
const looks = cells.map((cell) => [...cell.classList].find((name) => name.startsWith("rate-")) ?? "");
/** @type {(import("./society-cells.js").Cell | undefined)[]} */
const drawn = buttons.map(() => undefined);
const size = Math.round(Math.sqrt(buttons.length));
/** @type {Map<number, Promise<Part>>} by the first iteration */
const parts = new Map();
/** @type {Map<number, Part>} those of them that have come */
const there = new Map();
let span = 0; // iterations of a part; 0 until the first has come
let chosen = buttons.findIndex((button) => button.getAttribute("aria-pressed") === "true");
let wanted = 0; // the latest request for the chosen agent; answers to older ones come too late
/** @type {number | undefined} */
let resting;
/** @type {number | null} of the next step, while it plays by itself */
let playing = null;

const at = () => Number(slider.value) - 1;
const last = () => Number(slider.max) - 1;

// ---- The grid -------------------------------------------------------------------

/** @param {number} iteration - from 0 */
function firstOf(iteration) {
  return span ? Math.floor(iteration / span) * span : 0;
}

/**
 * The part that has an iteration, asked for once.
 *
 * @param {number} iteration
 * @returns {Promise<Part>}
 */
function partOf(iteration) {
  const first = firstOf(iteration);
  const known = parts.get(first);
  if (known && span) return known;
  const asked = fetch(`${bar.dataset.grid}?iteration=${iteration}`, { headers: { Accept: "application/json" } })
    .then((answer) => {
      if (!answer.ok || answer.redirected) throw new Error(`the grid answered ${answer.status}`);
      return answer.json();
    })
    .then((/** @type {Part} */ part) => {
      span = part.span;
      there.set(part.first, part);
      parts.set(part.first, asked);
      return part;
    });
  parts.set(first, asked);
  asked.catch(() => parts.delete(first));
  return asked;
}

/** Draw the iteration at which the slider stands, as far as its numbers are there. */
function draw() {
  const iteration = at();
  const part = there.get(firstOf(iteration));
  if (!part) return;
  const name = shows.value;
  const change = isChange(name);
  const found = values(name, part, there.get(0), iteration, buttons.length);
  for (const [agent, value] of found.entries()) {
    const cell = cellOf(value, change);
    const button = buttons[agent];
    if (looks[agent] !== cell.look) {
      cells[agent].classList.replace(looks[agent], cell.look);
      looks[agent] = cell.look;
    }
    if (drawn[agent] === cell) continue;
    drawn[agent] = cell;
    button.textContent = cell.text;
    button.setAttribute("aria-label", `${called[agent]}: ${cell.said}`);
  }
}

function words() {
  where.textContent = t("%(done)s of %(all)s", { done: at() + 1, all: where.dataset.of });
}

/** @param {number} iteration - from 0 */
function step(iteration) {
  slider.value = String(iteration + 1);
  stepped();
}

// The slider stands elsewhere: the grid follows at once, the chosen agent when it rests.
async function stepped() {
  words();
  unlink();
  if (there.has(firstOf(at())) && span) draw();
  else {
    await Promise.all([partOf(at()), isChange(shows.value) ? partOf(0) : null]).catch(console.error);
    draw();
  }
  later();
}

shows.addEventListener("change", async () => {
  const change = isChange(shows.value);
  for (const each of findAll("[data-step]")) each.textContent = legend(Number(each.dataset.step), change);
  if (change) await partOf(0).catch(console.error);
  draw();
});
slider.addEventListener("input", () => {
  stop();
  stepped();
});
bar.addEventListener("submit", (event) => event.preventDefault());

// ---- The chosen agent -------------------------------------------------------------

/**
 * @param {number} agent
 * @param {boolean} focus - whether it takes the focus, too
 */
function choose(agent, focus) {
  if (agent === chosen && !focus) return;
  for (const [which, pressed] of /** @type {[number, boolean][]} */ ([[chosen, false], [agent, true]])) {
    buttons[which].setAttribute("aria-pressed", String(pressed));
    buttons[which].tabIndex = pressed ? 0 : -1;
  }
  const other = agent !== chosen;
  chosen = agent;
  select.value = String(agent);
  if (focus) buttons[agent].focus();
  if (!other) return;
  unlink();
  later();
}

function later() {
  wanted += 1;
  clearTimeout(resting);
  resting = setTimeout(rested, REST);
}

function rested() {
  mark();
  ask();
}

/** Mark the iteration at which the slider stands in the charts that go by iteration. */
function mark() {
  for (const figure of findAll("#charts figure")) setParameter(figure, "shown", at() + 1);
}

async function ask() {
  const mine = ++wanted;
  const answer = await fetch(`${bar.dataset.chosen}${chosen}/${at() + 1}`).catch(() => null);
  const now = answer?.ok && !answer.redirected ? (await parsed(answer)).body : null;
  if (mine !== wanted || !now) return;
  put(find("#chosen"), now);
  history.replaceState(null, "", `${location.pathname}?iteration=${at() + 1}&agent=${chosen}`);
  link();
}

grid.addEventListener("click", (event) => {
  const button = closest(event, "button", HTMLButtonElement);
  if (button) choose(Number(button.dataset.agent), true);
});
grid.addEventListener("keydown", (event) => {
  if (event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || !closest(event, "button")) return;
  const to = neighbour(chosen, event.key, size);
  if (to === undefined) return;
  event.preventDefault();
  choose(to, true);
});
select.addEventListener("change", () => choose(Number(select.value), false));
find("#chosen").addEventListener("click", (event) => {
  const other = closest(event, "a[data-agent]", HTMLAnchorElement);
  if (!other || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  choose(Number(other.dataset.agent), true);
});

// ---- Who criticised whom -----------------------------------------------------------

function unlink() {
  for (const line of links.querySelectorAll("line")) line.remove();
}

/** Draw lines from the critics of the chosen agent to it, and from it to whom it criticised. */
function link() {
  unlink();
  const part = find("#chosen-part");
  const numbers = (/** @type {string | undefined} */ text) => (text ?? "").split(" ").filter(Boolean).map(Number);
  const box = links.getBoundingClientRect();
  const middle = (/** @type {number} */ agent) => {
    const place = cells[agent].getBoundingClientRect();
    return { x: place.left + place.width / 2 - box.left, y: place.top + place.height / 2 - box.top, reach: place.width / 2 };
  };
  const here = middle(chosen);
  const lines = [
    ...numbers(part.dataset.criticised).map((other) => ({ from: here, to: middle(other), look: "link-out" })),
    ...numbers(part.dataset.critics).map((other) => ({ from: middle(other), to: here, look: "link-in" })),
  ];
  for (const { from, to, look } of lines) {
    for (const each of ["under", look]) links.append(lineOf(from, to, each));
  }
}

/**
 * A line from edge to edge of two cells, so that what stands in them can be read.
 *
 * @param {{x: number, y: number, reach: number}} from
 * @param {{x: number, y: number, reach: number}} to
 * @param {string} look
 */
function lineOf(from, to, look) {
  const long = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [x, y] = [(to.x - from.x) / long, (to.y - from.y) / long];
  const line = document.createElementNS(SVG, "line");
  const ends = { x1: from.x + x * from.reach, y1: from.y + y * from.reach, x2: to.x - x * to.reach, y2: to.y - y * to.reach };
  for (const [name, value] of Object.entries(ends)) line.setAttribute(name, value.toFixed(1));
  line.setAttribute("class", look);
  return line;
}

new ResizeObserver(link).observe(grid);

// ---- By itself -----------------------------------------------------------------------

function start() {
  play.textContent = play.dataset.pause ?? "";
  if (at() === last()) step(0);
  playing = setTimeout(onwards, PACE);
}

function onwards() {
  step(Math.min(at() + 1, last()));
  if (at() === last()) stop();
  else playing = setTimeout(onwards, PACE);
}

function stop() {
  if (playing !== null) clearTimeout(playing);
  playing = null;
  play.textContent = play.dataset.play ?? "";
}

play.addEventListener("click", () => (playing === null ? start() : stop()));

// ---- A society that goes on ------------------------------------------------------------

const live = find("#live");
const tell = teller((percent) => t("%(percent)s percent of the interactions are over.", { percent }));
let known = live.dataset.at;

/** @param {import("./watch.js").Change} data */
function change(data) {
  showFigures(find("main"), data);
  tell(data);
  if (data.at === undefined || data.at === known) return;
  known = data.at;
  renew();
}

const renew = seldom(PAUSE, async () => {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "facts", "none-over"]) put(find(`#${id}`), find(`#${id}`, now));
  find("#none-over").hidden = find("#none-over", now).hidden;
  putCharts(now);
  find("#said").textContent = find("#head .tag").textContent;
  const newest = at() === last();
  slider.max = find("#iteration", now, HTMLInputElement).max;
  parts.delete(firstOf(last()));
  there.delete(firstOf(last()));
  if (newest && playing === null) step(last());
  else stepped();
});

/** @param {HTMLElement} now */
function putCharts(now) {
  const fresh = findAll("#charts > section", now);
  if (!document.querySelector("#charts > section")) {
    find("#charts").className = find("#charts", now).className;
    put(find("#charts"), find("#charts", now));
    return mark();
  }
  for (const each of fresh) putChart(find(`#${each.id}`), each);
  mark();
}

// ---- The beginning -------------------------------------------------------------------

play.hidden = false;
find("#shows-field").hidden = false;
for (const each of findAll(".with-links")) each.hidden = false;
shows.value = "alignment_after"; // browsers keep what was chosen before the page was loaded again
slider.value = slider.defaultValue;
select.value = String(chosen);
mark();
if (slider.dataset.begun !== "0") partOf(at()).then(draw, console.error);
if (live.dataset.number) follow({ societies: [Number(live.dataset.number)] }, change);
