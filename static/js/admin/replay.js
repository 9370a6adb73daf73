// Steps through a match without leaving the page. The server renders every step; this fetches it and puts its parts in.

const PARTS = ["replay-steps", "replay-where", "replay-views", "replay-events", "replay-generation"];
const bar = document.querySelector("#replay");
const slider = bar.querySelector("#at");
let wanted = 0; // the latest request; answers to older ones come too late

async function show(number) {
  const last = Number(slider.max);
  const to = Math.min(Math.max(1, number), last);
  slider.value = String(to);
  const mine = ++wanted;
  const address = `${bar.dataset.url}?at=${to}`;
  const answer = await fetch(address).catch(() => null);
  if (mine !== wanted) return;
  if (!answer?.ok || answer.redirected) return location.assign(address);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  if (mine === wanted) put(page, address);
}

function put(page, address) {
  const focused = document.activeElement?.textContent;
  const openSeats = [...document.querySelectorAll("#replay-views details")].map((each) => each.open);
  for (const id of PARTS) document.getElementById(id).replaceWith(page.getElementById(id));
  document.querySelectorAll("#replay-views details").forEach((each, seat) => (each.open = openSeats[seat]));
  slider.setAttribute("aria-valuetext", page.querySelector("#at").getAttribute("aria-valuetext"));
  if (document.activeElement === document.body) {
    [...document.querySelectorAll("#replay-steps a")].find((each) => each.textContent === focused)?.focus();
  }
  history.replaceState(null, "", address);
}

slider.addEventListener("input", () => show(Number(slider.value)));
bar.addEventListener("submit", (event) => {
  event.preventDefault();
  show(Number(slider.value));
});
document.addEventListener("click", (event) => {
  const link = event.target.closest("#replay-steps a[href], #replay-events li > a");
  if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  show(Number(new URL(link.href).searchParams.get("at")));
});
document.addEventListener("keydown", (event) => {
  if (event.target.closest("input, textarea, select, pre, .scroll") || event.altKey || event.ctrlKey || event.metaKey) return;
  const by = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
  if (!by) return;
  event.preventDefault();
  show(Number(slider.value) + by);
});
