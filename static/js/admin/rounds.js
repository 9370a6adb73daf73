// The list of rounds: bars of those that are played move by themselves.

import { findAll } from "../dom.js";
import { page } from "./ask.js";
import { show, watch } from "./watch.js";

const CROSS_PLAYS_EVERY = 5000;
const rows = new Map(findAll("tr[data-round]", document, HTMLTableRowElement).map((row) => [Number(row.dataset.round), row]));

/** @param {import("./watch.js").Change} data */
function change(data) {
  const row = rows.get(data.round);
  if (!row) return;
  show(row, data);
  if ("status" in data && row.dataset.status !== data.status) renew(data.round, row);
  row.dataset.status = data.status ?? row.dataset.status;
}

/**
 * A round that has come to an end is shown as the server shows it, with its score.
 *
 * @param {number} round
 * @param {HTMLTableRowElement} row
 */
async function renew(round, row) {
  const now = (await page())?.querySelector(`a[href$="/rounds/${round}"]`)?.closest("tr");
  if (now) put(row, now);
}

/**
 * The cell with the tick box stays as it is.
 *
 * @param {HTMLTableRowElement} row
 * @param {HTMLTableRowElement} now
 */
function put(row, now) {
  for (const [index, cell] of [...row.cells].entries()) {
    if (!cell.querySelector("input")) cell.replaceChildren(...now.cells[index].childNodes);
  }
}

// A cross-play has rounds that nobody watches one by one: its row is asked for again now and then, until all are over.
async function renewCrossPlays() {
  const body = document.hidden ? null : await page();
  for (const row of findAll("tr[data-cross]", document, HTMLTableRowElement)) {
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
