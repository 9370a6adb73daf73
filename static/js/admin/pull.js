// Shows how far a pull is, and loads the page again once it is over: its form then says what is wrong with it.

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
    else if (body) return location.reload();
  }
  setTimeout(look, SECONDS * 1000);
}

setTimeout(look, SECONDS * 1000);
