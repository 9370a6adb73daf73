// Buttons that copy what stands in a field. Without a clipboard there are none, and the field can be selected.

import { find, findAll } from "../dom.js";

for (const button of findAll("[data-copy]", document)) {
  if (!navigator.clipboard || !(button instanceof HTMLButtonElement)) continue;
  button.hidden = false;
  const words = button.textContent;
  button.addEventListener("click", async () => {
    const field = find(`#${button.dataset.copy}`, document, HTMLInputElement);
    field.select();
    await navigator.clipboard.writeText(field.value);
    button.textContent = button.dataset.copied ?? words;
  });
}
