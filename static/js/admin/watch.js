// The line over which the server says how far jobs are: rounds, trainings, campaigns and all other kinds.

import { find, findAll } from "../dom.js";
import { line } from "../line.js";
import { page } from "./ask.js";
import { worded } from "./figures.js";

/** @typedef {Record<string, any>} Change - what has changed of a job, by the name of the figure, and its number under the name of its kind */

const PAUSE = 200; // after the goodbye of a server that wants to see whether we may still be here
const STEP = 10; // percent between two words to who listens

/**
 * Calls `on.change` with what has changed of one of these jobs, `on.lost` and `on.back` with the line, `on.refused` when nobody
 * is signed in.
 *
 * @param {Record<string, number[]>} what - numbers of jobs by the plural of their kind
 * @param {{change(change: Change): void, lost(): void, back(): void, refused(): void}} on
 */
export function watch(what, on) {
  const heard = {
    ...on,
    back() {
      on.back();
      socket.emit("watch", what, () => {});
    },
  };
  const { socket, close } = line("/admin", {}, heard, PAUSE);
  socket.onAny((/** @type {string} */ _kind, /** @type {Change} */ data) => on.change(data));
  return { close };
}

/**
 * The same for a page that is about one thing: it says itself when the line is lost, and that somebody has to sign in.
 *
 * @param {Record<string, number[]>} what - numbers of jobs by the plural of their kind
 * @param {(change: Change) => void} change
 */
export function follow(what, change) {
  const place = find("#fresh-notice");
  const { lost = "", signedOut = "" } = place.dataset;
  const say = (/** @type {string} */ words) => {
    if (place.textContent !== words) place.textContent = words;
  };
  return watch(what, { change, lost: () => say(lost), back: () => say(""), refused: () => say(signedOut) });
}

/**
 * Says to who listens how much is done, in steps of ten percent.
 *
 * @param {(percent: number) => string} words - makes a sentence of a percentage
 */
export function teller(words) {
  /** @type {number | null} */
  let told = null;
  return (/** @type {Change} */ { percent }) => {
    if (percent === undefined) return;
    const step = Math.floor(percent / STEP);
    if (told !== null && step > told) find("#said").textContent = words(step * STEP);
    told = step;
  };
}

/**
 * A text with what stands between back-ticks in it as code, as the templates' filter `in_code` sets it.
 *
 * @param {string} text
 * @returns {(string | HTMLElement)[]}
 */
function inCode(text) {
  const parts = text.split("`");
  if (parts.length % 2 === 0) parts.push(parts.splice(-2).join("`"));
  return parts.map((part, place) => (place % 2 ? Object.assign(document.createElement("code"), { textContent: part }) : part));
}

/**
 * Puts why something waits or stopped as the server says it in the language of the page: the line has it in English.
 *
 * @param {HTMLElement} place
 */
async function translated(place) {
  const now = await page(location.href);
  const words = now?.querySelector(`#${place.id} [data-figure="error"]`);
  if (words) for (const each of findAll('[data-figure="error"]', place)) each.replaceChildren(...words.cloneNode(true).childNodes);
}

/**
 * Put the figures that have changed where they are shown.
 *
 * @param {HTMLElement} place
 * @param {Change} change
 */
export function show(place, change) {
  for (const [name, value] of Object.entries(change)) {
    if (name === "error" && value !== null && document.documentElement.lang !== "en") translated(place);
    else for (const each of findAll(`[data-figure="${name}"]`, place)) each.replaceChildren(...inCode(worded(name, value)));
    for (const each of findAll(`[data-with="${name}"]`, place)) each.hidden = value === null;
    for (const each of findAll(`[data-without="${name}"]`, place)) each.hidden = value !== null;
  }
  for (const bar of findAll("[data-figure=bar]", place, HTMLProgressElement)) {
    bar.max = change.steps ?? change.of ?? bar.max;
    // The step of some kinds is a text, such as that of a benchmark: 8 of 30 chats.
    bar.value = change.finished ?? (typeof change.step === "number" ? change.step : null) ?? change.done ?? bar.value;
  }
}
