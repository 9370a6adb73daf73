// Refuses a file that is too large before it is sent: a server may close the line before it says why.

import { find } from "../dom.js";

const input = find("#file", document, HTMLInputElement);

input.addEventListener("change", () => {
  const size = input.files?.[0]?.size ?? 0;
  const isTooLarge = size > Number(input.dataset.most);
  input.setCustomValidity(isTooLarge ? (input.dataset.tooLarge ?? "") : "");
  input.reportValidity();
});
