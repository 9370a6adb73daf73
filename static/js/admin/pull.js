// Shows how far a pull is, and opens the page again once it is over: its form then says what is wrong with it.

import { find } from "../dom.js";
import { answer } from "./ask.js";
import { put } from "./put.js";

const SECONDS = 2;

async function look() {
  if (!document.hidden) {
    const { body, signedOut } = await answer();
    if (signedOut) return;
    const now = body?.querySelector("#pull");
    if (now) put(find("#pull"), now);
    else if (body) return end(body);
  }
  setTimeout(look, SECONDS * 1000);
}

/**
 * What was typed for another pull, which was refused meanwhile, stays.
 *
 * @param {HTMLElement} body
 */
function end(body) {
  if (document.querySelector("#place")) find("#pull").replaceWith(...body.querySelectorAll(".note"));
  else location.replace(location.pathname); // whatever way the page was asked for
}

setTimeout(look, SECONDS * 1000);
