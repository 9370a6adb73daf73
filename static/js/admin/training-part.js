// Keeps the notice about the training part fresh while it is being installed, and says when it is there.

import { find } from "../dom.js";
import { answer } from "./ask.js";
import { put } from "./put.js";

const SECONDS = 5;
const place = find("#training-part");

async function look() {
  if (!document.hidden) {
    const { body, signedOut } = await answer();
    const now = body?.querySelector("#training-part");
    if (signedOut) return;
    if (now) put(place, now);
    else if (body) return done();
  }
  setTimeout(look, SECONDS * 1000);
}

function done() {
  const words = document.createElement("p");
  words.className = "note note-good";
  words.setAttribute("role", "status");
  words.textContent = place.dataset.done ?? "";
  place.replaceChildren(words);
}

setTimeout(look, SECONDS * 1000);
