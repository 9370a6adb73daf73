// A campaign as it goes on: how far its round or its training is comes over a line; with each step the page is asked for anew.

import { page, seldom } from "./ask.js";
import { put, putChart } from "./put.js";
import { follow, show } from "./watch.js";

const PAUSE = 1000; // between two looks at the page
const live = document.querySelector("#live");
let at = live.dataset.at;

function change(data) {
  show(live, data);
  if (data.at === undefined || data.at === at) return;
  at = data.at;
  renew();
}

const renew = seldom(PAUSE, async () => {
  const now = await page(location.pathname);
  if (!now) return;
  for (const id of ["head", "live", "results", "further"]) put(document.getElementById(id), now.querySelector(`#${id}`));
  putChart(document.querySelector("#figure"), now.querySelector("#figure"));
  document.querySelector("#said").textContent = document.querySelector("#progress").textContent;
});

follow({ campaigns: [Number(live.dataset.campaign)] }, change);
