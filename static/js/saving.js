// A form that was sent says that it is being saved, and is not sent again while its answer is on the way.
// Without this script forms work all the same; the browser then shows by itself that it waits.

const SOON = 300; // milliseconds, before which an answer is simply there
const LONGEST = 20_000; // after which it may be sent again: the server gives up a form earlier

/** @type {Set<() => void>} */
const underWay = new Set();

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (event.defaultPrevented || !(form instanceof HTMLFormElement)) return;
  // Not form.method, which is the field of that name where a form has one.
  const method = event.submitter?.getAttribute("formmethod") ?? form.getAttribute("method");
  if (method?.toLowerCase() !== "post") return;
  if (form.getAttribute("aria-busy") === "true") {
    event.preventDefault();
    return;
  }
  form.setAttribute("aria-busy", "true");
  const button = event.submitter ?? form.querySelector("[type=submit]");
  const said = document.createElement("span");
  said.setAttribute("role", "status");
  said.className = "saving";
  button?.after(said);
  const soon = setTimeout(() => {
    said.textContent = document.body.dataset.saving ?? "";
    button?.setAttribute("aria-disabled", "true"); // not disabled: its own name and value are sent, too
  }, SOON);
  const over = () => {
    clearTimeout(soon);
    clearTimeout(late);
    form.removeAttribute("aria-busy");
    button?.removeAttribute("aria-disabled");
    said.remove();
    underWay.delete(over);
  };
  const late = setTimeout(over, LONGEST);
  underWay.add(over);
});

// Back from the next page the browser may show this one as it was.
window.addEventListener("pageshow", () => {
  for (const over of [...underWay]) over();
});
