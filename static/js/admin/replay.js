// Steps through a match without leaving the page, by hand or by itself. The server renders every step; this fetches it
// and puts its parts in. A match that is still played is followed from its last event on.

const PARTS = ["replay-previous", "replay-next", "replay-where", "replay-facts", "replay-views", "replay-offers", "replay-generation"];
const FOLLOW = 3; // seconds
const bar = document.querySelector("#replay");
const slider = bar.querySelector("#at");
const play = bar.querySelector("#replay-play");
const pace = bar.querySelector("#pace");
const events = document.querySelector("#replay-events");
let wanted = 0; // the latest request; answers to older ones come too late
let timer = null; // of the next step, while the match plays by itself

const at = () => Number(slider.value);
const last = () => Number(slider.max);

async function show(number) {
  const to = Math.min(Math.max(1, number), last());
  slider.value = String(to);
  const address = `${bar.dataset.url}?at=${to}`;
  const mine = ++wanted;
  const page = await fetched(address);
  if (mine !== wanted) return;
  if (!page) return location.assign(address);
  put(page);
  history.replaceState(null, "", address);
}

async function fetched(address) {
  const answer = await fetch(address).catch(() => null);
  return answer?.ok && !answer.redirected ? new DOMParser().parseFromString(await answer.text(), "text/html") : null;
}

function put(page) {
  const focused = document.activeElement?.id;
  const openSeats = [...document.querySelectorAll("#replay-views details")].map((each) => each.open);
  for (const id of PARTS) document.getElementById(id).replaceWith(page.getElementById(id));
  document.querySelector(".head .tag").replaceWith(page.querySelector(".head .tag"));
  document.querySelectorAll("#replay-views details").forEach((each, seat) => (each.open = openSeats[seat]));
  if (focused && document.activeElement === document.body) document.getElementById(focused)?.focus({ preventScroll: true });
  const there = page.querySelector("#at");
  slider.max = there.max;
  slider.value = there.getAttribute("value");
  slider.setAttribute("aria-valuetext", there.getAttribute("aria-valuetext"));
  events.append(...[...page.querySelector("#replay-events").children].slice(events.children.length));
  mark();
}

/** Mark the event that is shown, and bring it into sight where the list has a window of its own. */
function mark() {
  [...events.children].forEach((each, index) => {
    const now = index + 1 === at();
    each.classList.toggle("now", now);
    if (now) each.setAttribute("aria-current", "step");
    else each.removeAttribute("aria-current");
  });
  const now = events.children[at() - 1];
  const seen = events.parentElement;
  const top = now.getBoundingClientRect().top - seen.getBoundingClientRect().top;
  if (top < 0 || top + now.offsetHeight > seen.clientHeight) seen.scrollTop += top - (seen.clientHeight - now.offsetHeight) / 2;
}

// ---- By hand ------------------------------------------------------------------

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
  const link = event.target.closest("#replay-previous[href], #replay-next[href], #replay-events li > a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  step(Number(new URL(link.href).searchParams.get("at")));
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, pre, .scroll") || event.altKey || event.ctrlKey || event.metaKey || event.shiftKey) return;
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  step(at() + by);
});

// ---- By itself ----------------------------------------------------------------

function start() {
  play.textContent = play.dataset.pause;
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
  clearTimeout(timer);
  timer = null;
  play.textContent = play.dataset.play;
}

play.addEventListener("click", () => (timer === null ? start() : stop()));
play.hidden = false;
bar.querySelector("#replay-pace").hidden = false;

// ---- A match that goes on ------------------------------------------------------

async function follow() {
  const asked = wanted;
  const newest = at() === last();
  const page = document.hidden || timer !== null ? null : await fetched(newest ? bar.dataset.url : `${bar.dataset.url}?at=${at()}`);
  if (page && timer === null && asked === wanted) {
    if (page.querySelector("#at").max !== slider.max) put(page);
    if (!page.querySelector("#replay[data-live]")) return; // over: what it ended with has been put
  }
  setTimeout(follow, FOLLOW * 1000);
}

mark();
if ("live" in bar.dataset) setTimeout(follow, FOLLOW * 1000);
