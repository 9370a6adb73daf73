// The list of rounds: bars of those that are played move by themselves.

import { page } from "./ask.js";
import { show, watch } from "./watch.js";

const CROSS_PLAYS_EVERY = 5000;
const rows = new Map([...document.querySelectorAll("tr[data-round]")].map((row) => [Number(row.dataset.round), row]));

function change(data) {
  const row = rows.get(data.round);
  if (!row) return;
  show(row, data);
  if ("status" in data && row.dataset.status !== data.status) renew(data.round, row);
  row.dataset.status = data.status ?? row.dataset.status;
}

// A round that has come to an end is shown as the server shows it, with its score.
async function renew(round, row) {
  const now = (await page())?.querySelector(`a[href$="/rounds/${round}"]`)?.closest("tr");
  if (now) put(row, now);
}

// The cell with the tick box stays as it is.
function put(row, now) {
  [...row.cells].forEach((cell, index) => cell.querySelector("input") || cell.replaceChildren(...now.cells[index].childNodes));
}

// A cross-play has rounds that nobody watches one by one: its row is asked for again now and then, until all are over.
async function renewCrossPlays() {
  const body = document.hidden ? null : await page();
  for (const row of document.querySelectorAll("tr[data-cross]")) {
    const now = body?.querySelector(`a[href$="/rounds/matrix/${row.dataset.cross}"]`)?.closest("tr");
    if (!now) continue;
    put(row, now);
    if (!now.dataset.cross) row.removeAttribute("data-cross");
  }
  crossPlaysLater();
}

function crossPlaysLater() {
  if (document.querySelector("tr[data-cross]")) setTimeout(renewCrossPlays, CROSS_PLAYS_EVERY);
}

crossPlaysLater();
if (rows.size) watch({ rounds: [...rows.keys()] }, { change, lost() {}, back() {}, refused() {} });
