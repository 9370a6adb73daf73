// Asks for this page again while a worker is at something, and shows the part in which the answer appears.

const SECONDS = 1.5;
const LONGEST = 120;

async function look(until) {
  if (performance.now() > until) return;
  const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.ok && !answer.redirected) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    if (!page.querySelector("#waiting[data-waits]")) return show(page);
  }
  setTimeout(look, SECONDS * 1000, until);
}

function show(page) {
  for (const selector of ["#waiting", ".panel-head:has(#test) .tag"]) {
    const old = document.querySelector(selector);
    const now = page.querySelector(selector);
    if (!old || !now) continue;
    old.replaceChildren(...now.childNodes); // the live region stays, so that what is new in it is read
    old.className = now.className;
  }
  document.querySelector("#waiting").removeAttribute("aria-busy");
}

setTimeout(look, SECONDS * 1000, performance.now() + LONGEST * 1000);
