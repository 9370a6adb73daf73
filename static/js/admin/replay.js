// Steps through a match without leaving the page, by hand or by itself. The server renders every step; this fetches it
// and puts its parts in. A match that is still played is followed from its last event on.

import { closest, find, findAll, parsed } from "../dom.js";

const PARTS = ["replay-previous", "replay-next", "replay-where", "replay-facts", "replay-views", "replay-offers", "replay-generation"];
const FOLLOW = 3; // seconds
const bar = find("#replay");
const slider = find("#at", bar, HTMLInputElement);
const play = find("#replay-play", bar);
const pace = find("#pace", bar, HTMLSelectElement);
const events = find("#replay-events");
const { url = "" } = bar.dataset;
let wanted = 0; // the latest request; answers to older ones come too late
/** @type {number | null} of the next step, while the match plays by itself */
let timer = null;

const at = () => Number(slider.value);
const last = () => Number(slider.max);

/** @param {number} number - of an event, from 1 */
async function show(number) {
  const to = Math.min(Math.max(1, number), last());
  slider.value = String(to);
  const address = `${url}?at=${to}`;
  const mine = ++wanted;
  const page = await fetched(address);
  if (mine !== wanted) return;
  if (!page) return location.assign(address);
  put(page);
  history.replaceState(null, "", address);
}

/** @param {string} address */
async function fetched(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok && !answer.redirected ? parsed(answer) : null;
}

/** @param {Document} page */
function put(page) {
  const focused = document.activeElement?.id;
  const openSeats = findAll("#replay-views details", document, HTMLDetailsElement).map((each) => each.open);
  for (const id of PARTS) find(`#${id}`).replaceWith(find(`#${id}`, page));
  find(".head .tag").replaceWith(find(".head .tag", page));
  for (const [seat, each] of findAll("#replay-views details", document, HTMLDetailsElement).entries()) each.open = openSeats[seat];
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  const there = find("#at", page, HTMLInputElement);
  slider.max = there.max;
  slider.value = there.defaultValue;
  slider.setAttribute("aria-valuetext", there.getAttribute("aria-valuetext") ?? "");
  events.append(...[...find("#replay-events", page).children].slice(events.children.length));
  mark();
}

/** Mark the event that is shown, and bring it into sight where the list has a window of its own. */
function mark() {
  const list = findAll(":scope > li", events);
  for (const [index, each] of list.entries()) {
    const now = index + 1 === at();
    each.classList.toggle("now", now);
    if (now) each.setAttribute("aria-current", "step");
    else each.removeAttribute("aria-current");
  }
  const now = list[at() - 1];
  const seen = events.parentElement;
  if (!seen) return;
  const top = now.getBoundingClientRect().top - seen.getBoundingClientRect().top;
  if (top < 0 || top + now.offsetHeight > seen.clientHeight) seen.scrollTop += top - (seen.clientHeight - now.offsetHeight) / 2;
}

// ---- By hand ------------------------------------------------------------------

/** @param {number} number */
function step(number) {
  stop();
  show(number);
}

slider.addEventListener("input", () => step(at()));
bar.addEventListener("submit", (event) => {
  event.preventDefault();
  step(at());
});
document.addEventListener("click", (event) => {
  const link = closest(event, "#replay-previous[href], #replay-next[href], #replay-events li > a", HTMLAnchorElement);
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  step(Number(new URL(link.href).searchParams.get("at")));
});
document.addEventListener("keydown", (event) => {
  if (closest(event, "input, textarea, select, pre, .scroll") || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const by = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
  if (!by) return;
  event.preventDefault();
  step(at() + by);
});

// ---- By itself ----------------------------------------------------------------

function start() {
  play.textContent = play.dataset.pause ?? "";
  if (at() === last()) show(1);
  timer = setTimeout(onwards, Number(pace.value) * 1000);
}

async function onwards() {
  const mine = timer;
  await show(at() + 1);
  if (timer !== mine) return; // paused while the answer was on its way
  if (at() === last()) stop();
  else timer = setTimeout(onwards, Number(pace.value) * 1000);
}

function stop() {
  if (timer !== null) clearTimeout(timer);
  timer = null;
  play.textContent = play.dataset.play ?? "";
}

play.addEventListener("click", () => (timer === null ? start() : stop()));
play.hidden = false;
find("#replay-pace", bar).hidden = false;

// ---- A match that goes on ------------------------------------------------------

async function follow() {
  const asked = wanted;
  const newest = at() === last();
  const page = document.hidden || timer !== null ? null : await fetched(newest ? url : `${url}?at=${at()}`);
  if (page && timer === null && asked === wanted) {
    if (find("#at", page, HTMLInputElement).max !== slider.max) put(page);
    if (!page.querySelector("#replay[data-live]")) return; // over: what it ended with has been put
  }
  setTimeout(follow, FOLLOW * 1000);
}

mark();
if ("live" in bar.dataset) setTimeout(follow, FOLLOW * 1000);
