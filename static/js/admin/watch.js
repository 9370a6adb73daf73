// The line over which the server says how far rounds, training jobs and campaigns are.

import { line } from "../line.js";
import { language } from "../words.js";

const PAUSE = 200; // after the goodbye of a server that wants to see whether we may still be here
const STEP = 10; // percent between two words to who listens
const WHOLE = new Intl.NumberFormat(language(), { maximumFractionDigits: 2 });
const DIGITS = new Intl.NumberFormat(language(), { maximumSignificantDigits: 4, useGrouping: false });
const EXACT = ["loss", "eval_loss", "best_loss", "epoch", "lr", "gradient_norm", "tokens_per_second"];
const CENTS = new Intl.NumberFormat(language(), { minimumFractionDigits: 2, maximumFractionDigits: 2 });
const LESS = new Intl.NumberFormat(language(), { minimumFractionDigits: 4, maximumFractionDigits: 4 });

// `what` is {rounds: numbers}, {jobs: numbers} or {campaigns: numbers}. Calls `on.change` with what has changed of one of them, `on.lost` and `on.back` with the line, `on.refused` when nobody is signed in.
export function watch(what, on) {
  const heard = {
    ...on,
    back() {
      on.back();
      socket.emit("watch", what, () => {});
    },
  };
  const { socket, close } = line("/admin", {}, heard, PAUSE);
  for (const one of ["round", "job", "campaign"]) socket.on(one, on.change);
  return { close };
}

// The same for a page that is about one thing: it says itself when the line is lost, and that somebody has to sign in.
export function follow(what, change) {
  const place = document.querySelector("#fresh-notice");
  const { lost, signedOut } = place.dataset;
  const say = (words) => place.textContent !== words && (place.textContent = words);
  return watch(what, { change, lost: () => say(lost), back: () => say(""), refused: () => say(signedOut) });
}

// Says to who listens how much is done, in steps of ten percent; `words` makes a sentence of a percentage.
export function teller(words) {
  let told = null;
  return ({ percent }) => {
    if (percent === undefined) return;
    const step = Math.floor(percent / STEP);
    if (told !== null && step > told) document.querySelector("#said").textContent = words(step * STEP);
    told = step;
  };
}

// Put the figures that have changed where they are shown.
export function show(place, change) {
  for (const [name, value] of Object.entries(change)) {
    for (const each of place.querySelectorAll(`[data-figure="${name}"]`)) each.textContent = worded(name, value);
    for (const each of place.querySelectorAll(`[data-with="${name}"]`)) each.hidden = value === null;
    for (const each of place.querySelectorAll(`[data-without="${name}"]`)) each.hidden = value !== null;
  }
  for (const bar of place.querySelectorAll("[data-figure=bar]")) {
    bar.max = change.steps ?? change.of ?? bar.max;
    bar.value = change.finished ?? change.step ?? change.done ?? bar.value;
  }
}

function worded(name, value) {
  if (value === null) return "";
  if (name === "left") return span(value);
  if (name === "cost") return `$${(value >= 1 || value === 0 ? CENTS : LESS).format(value)}`;
  if (EXACT.includes(name)) return DIGITS.format(value);
  return typeof value === "number" ? WHOLE.format(value) : value;
}

function span(seconds) {
  const two = (number) => String(number).padStart(2, "0");
  const minutes = Math.floor(seconds / 60);
  const hours = Math.floor(minutes / 60);
  return `${hours ? `${hours}:${two(minutes % 60)}` : minutes}:${two(seconds % 60)}`;
}
