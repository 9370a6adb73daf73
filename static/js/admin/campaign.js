// A campaign as it goes on: how far its round or its training is comes over a line; with each step the page is requested again.

import { find } from "../dom.js";
import { page } from "./ask.js";
import { put, putChart } from "./put.js";
import { seldom } from "./seldom.js";
import { follow, show } from "./watch.js";

const PAUSE = 1000; // between two looks at the page
const live = find("#live");
let at = live.dataset.at;

/** @param {import("./watch.js").Change} data */
function change(data) {
  show(live, data);
  if (data.at === undefined || data.at === at) return;
  at = data.at;
  renew();
}

const renew = seldom(PAUSE, async () => {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "results", "further"]) put(find(`#${id}`), find(`#${id}`, now));
  putChart(find("#figure"), find("#figure", now));
  find("#said").textContent = find("#progress").textContent;
});

follow({ campaigns: [Number(live.dataset.campaign)] }, change);
