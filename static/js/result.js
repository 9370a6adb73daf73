import { find } from "./dom.js";
import { showTimes } from "./times.js";

const main = find("#main");
showTimes(main);
// Whoever comes from the table is read the result at once; a page that is opened again starts at its top.
if (document.referrer && new URL(document.referrer).pathname === location.pathname.replace(/\/result$/, "")) main.focus();
