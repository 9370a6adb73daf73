// Puts a slider in the place of a field for a number. It stands nowhere until it is moved, so that nobody answers by not
// answering; the field keeps the answer and sends it.

const ANSWERS = /^( |Arrow(Up|Down|Left|Right)|Home|End|Page(Up|Down))$/; // the keys that set a slider

/** @param {HTMLInputElement} field */
export function makeSlider(field) {
  const range = document.createElement("input");
  range.type = "range";
  range.min = field.dataset.least ?? "0";
  range.max = field.dataset.most ?? "100";
  range.id = `${field.id}-slider`;
  range.setAttribute("aria-describedby", field.getAttribute("aria-describedby") ?? "");
  const shown = document.createElement("output");
  shown.className = "tag";
  shown.htmlFor.add(range.id);
  const show = () => {
    const isSet = field.value !== "";
    if (isSet) range.value = field.value;
    range.classList.toggle("unset", !isSet);
    shown.classList.toggle("tag-open", !isSet);
    shown.textContent = isSet ? range.value : (field.dataset.unset ?? "");
    if (isSet) range.removeAttribute("aria-valuetext");
    else range.setAttribute("aria-valuetext", field.dataset.unset ?? "");
  };
  const take = () => {
    field.value = range.value;
    show();
    field.dispatchEvent(new Event("input", { bubbles: true }));
  };
  // A press where the handle would be is an answer as well, though nothing moves. Other keys than those of a slider, as
  // those that speak to a screen reader or to the browser, are none.
  range.addEventListener("input", take);
  range.addEventListener("pointerup", take);
  range.addEventListener("keyup", (event) => {
    if (ANSWERS.test(event.key) && !event.altKey && !event.ctrlKey && !event.metaKey) take();
  });
  field.addEventListener("filled", show);
  field.hidden = true;
  field.after(range, shown);
  for (const label of field.labels ?? []) label.htmlFor = range.id;
  const box = field.parentElement;
  for (const hint of box?.querySelectorAll("[data-without-script], [data-with-script]") ?? []) {
    if (hint instanceof HTMLElement) hint.hidden = hint.dataset.withScript === undefined;
  }
  show();
}
