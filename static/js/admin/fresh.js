// Keeps parts of a page fresh: the server renders the page again, and what has changed of it is put in.

const SECONDS = 5;
const notice = document.querySelector("#fresh-notice");
let timer;

async function look() {
  clearTimeout(timer);
  if (document.hidden) return;
  const answer = await fetch(location.href, { headers: { Accept: "text/html" } }).catch(() => null);
  if (answer?.redirected) return say(notice.dataset.signedOut); // nothing more comes without signing in again
  if (answer?.ok) {
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const part of document.querySelectorAll("[data-fresh]")) renew(part, page.getElementById(part.id));
  }
  say(answer?.ok ? "" : notice.dataset.lost);
  timer = setTimeout(look, SECONDS * 1000);
}

function say(words) {
  if (notice.textContent !== words) notice.textContent = words;
}

// What has the focus keeps it, what is scrolled stays where it is, and what somebody is about to copy is left alone.
function renew(part, now) {
  const selection = document.getSelection();
  if (!now || part.innerHTML === now.innerHTML || (!selection.isCollapsed && selection.containsNode(part, true))) return;
  const focused = part.contains(document.activeElement) ? nameOf(document.activeElement) : null;
  const across = part.querySelector(".scroll")?.scrollLeft ?? 0;
  part.replaceChildren(...now.childNodes);
  part.querySelector(".scroll")?.scrollTo(across, 0);
  if (focused) [...part.querySelectorAll("a, [tabindex]")].find((each) => nameOf(each) === focused)?.focus({ preventScroll: true });
}

function nameOf(element) {
  return element.getAttribute("href") ?? element.getAttribute("aria-label");
}

document.addEventListener("visibilitychange", look);
timer = setTimeout(look, SECONDS * 1000);
