// Draws every <figure class="chart"> that names a Vega-Lite spec, in light or dark as the page is, and lets it be saved.
//
// The figure names its spec by `data-spec-url`, to which ?theme=light|dark is added, or by `data-spec-id`, the id of a
// <template> with the JSON {"light": spec, "dark": spec}. In it, [data-drawing] takes the drawing; [data-drawn] and
// [data-failed] are shown once it is there, or cannot be; [data-download=svg|pdf|png] are buttons, `data-name` names the
// file, and `data-save` is the address that draws it, the same bytes in every browser: it takes the spec as it came, with
// its signature. [data-unsaved] is shown where that fails. Nothing moves. The libraries are loaded by the first figure; they draw without eval and without styles of their
// own, which the pages' Content-Security-Policy forbids.

import { find, findAll } from "./dom.js";

/** @typedef {{finalize(): void, signal(name: string, value: unknown): void, runAsync(): Promise<unknown>}} Drawing */
/** @typedef {{view: Drawing, spec: Record<string, any>, finalize(): void}} Embedded - what vega-embed gives */
/** @typedef {{text: string, signature: string, theme: string}} Given - a spec, or one for each theme, as it came */
/** @typedef {(place: HTMLElement, spec: object, options: object) => Promise<Embedded>} Embed */

const LIBRARIES = ["vega.min.js", "vega-lite.min.js", "vega-embed.min.js"];
const WIDEST = 720; // pixels of a chart that may have any width
const WIDEST_PANEL = 420; // of one of several panels
const NARROWEST = 290; // of such a panel with what is around it
const AROUND = 90; // pixels beside it: its axis and the distance to the next
const HOW = { mode: "vega-lite", renderer: "svg", actions: false, ast: true, defaultStyle: false, tooltip: false };
const dark = matchMedia("(prefers-color-scheme: dark)");
/** @type {WeakMap<HTMLElement, Embedded>} the drawing of each figure */
const views = new WeakMap();
/** @type {WeakMap<HTMLElement, Given>} what each was drawn of */
const given = new WeakMap();
/** @type {WeakMap<HTMLElement, Record<string, number>>} the parameters that were given to each */
const parameters = new WeakMap();
/** @type {WeakMap<Element, number>} and how wide the page was for it */
const widths = new WeakMap();
/** @type {WeakMap<HTMLElement, number>} counts the tries, so that a late answer does not replace a newer one */
const turns = new WeakMap();
/** @type {Promise<Embed> | undefined} */
let libraries;

const resized = new ResizeObserver((entries) => {
  for (const { target } of entries) {
    const figure = target.closest("figure");
    if (figure && widths.has(target) && widths.get(target) !== target.clientWidth) draw(figure);
  }
});

dark.addEventListener("change", () => drawAll());
drawAll();

/**
 * Every figure below `root`; for a page that puts in new ones, too.
 *
 * @param {ParentNode} [root]
 */
export function drawAll(root = document) {
  for (const figure of findAll("figure.chart:is([data-spec-url], [data-spec-id])", root)) draw(figure);
}

/**
 * Give a parameter of a figure's spec a value, in its drawing and in those that will replace it; one without it stays.
 *
 * @param {HTMLElement} figure
 * @param {string} name
 * @param {number} value
 */
export function setParameter(figure, name, value) {
  parameters.set(figure, { ...parameters.get(figure), [name]: value });
  const drawn = views.get(figure);
  if (drawn) apply(figure, drawn);
}

/**
 * @param {HTMLElement} figure
 * @param {Embedded} drawn
 */
async function apply(figure, drawn) {
  const known = drawn.spec.params?.map((/** @type {{name: string}} */ each) => each.name) ?? [];
  for (const [name, value] of Object.entries(parameters.get(figure) ?? {})) if (known.includes(name)) drawn.view.signal(name, value);
  await drawn.view.runAsync();
}

/** @param {HTMLElement} figure */
async function draw(figure) {
  const turn = (turns.get(figure) ?? 0) + 1;
  turns.set(figure, turn);
  const place = find("[data-drawing]", figure);
  try {
    const [embed, spec] = await Promise.all([load(), specOf(figure)]);
    if (turns.get(figure) !== turn) return;
    widths.set(place, place.clientWidth);
    // The last drawing stays until the next one is there.
    const drawing = document.createElement("div");
    const view = await embed(drawing, fitted(spec, place.clientWidth), HOW);
    await apply(figure, view);
    if (turns.get(figure) !== turn) return view.finalize();
    views.get(figure)?.finalize();
    views.set(figure, view);
    place.replaceChildren(drawing);
    resized.observe(place);
    wire(figure);
    show(figure, "drawn");
  } catch (error) {
    console.error(error);
    if (turns.get(figure) === turn) show(figure, "failed");
  }
}

function load() {
  libraries ??= Promise.all(LIBRARIES.map(script)).then(() => /** @type {any} */ (window).vegaEmbed);
  return libraries;
}

/** @param {string} name */
function script(name) {
  return new Promise((resolve, reject) => {
    const element = document.createElement("script");
    element.src = new URL(`../vendor/${name}`, import.meta.url).href;
    element.async = false; // in their order: each needs the ones before it
    element.onload = resolve;
    element.onerror = () => reject(new Error(`${name} did not load`));
    document.head.append(element);
  });
}

/** @param {HTMLElement} figure */
async function specOf(figure) {
  const found = await givenTo(figure);
  given.set(figure, found);
  const spec = JSON.parse(found.text);
  return figure.dataset.specId ? spec[found.theme] : spec;
}

/**
 * @param {HTMLElement} figure
 * @returns {Promise<Given>}
 */
async function givenTo(figure) {
  const theme = dark.matches ? "dark" : "light";
  if (figure.dataset.specId) {
    const template = find(`#${CSS.escape(figure.dataset.specId)}`, document, HTMLTemplateElement);
    return { text: template.content.textContent.trim(), signature: template.dataset.signature ?? "", theme };
  }
  const url = new URL(figure.dataset.specUrl ?? "", location.href);
  url.searchParams.set("theme", theme);
  const answer = await fetch(url, { headers: { Accept: "application/json" } });
  if (!answer.ok || answer.redirected) throw new Error(`${url.pathname} answered ${answer.status}`);
  return { text: (await answer.text()).trim(), signature: answer.headers.get("Figure-Signature") ?? "", theme };
}

/**
 * A spec with a width in pixels takes the page's; one with a width a column keeps it. Of panels side by side, all are in
 * a row if there is room, else two, else one.
 *
 * @param {Record<string, any>} spec
 * @param {number} width - pixels
 */
function fitted(spec, width) {
  if (spec.concat && width > 0) return beside(spec, width);
  if (typeof spec.width !== "number" || width === 0) return spec;
  return { ...spec, width: Math.min(width, WIDEST), autosize: { type: "fit-x", contains: "padding" } };
}

/**
 * @param {Record<string, any>} spec
 * @param {number} width - pixels
 */
function beside(spec, width) {
  const room = Math.floor(width / NARROWEST);
  const columns = room >= spec.concat.length ? spec.concat.length : Math.min(2, Math.max(1, room));
  const panel = Math.min(WIDEST_PANEL, Math.floor(width / columns) - AROUND);
  return { ...spec, columns, concat: spec.concat.map((/** @type {object} */ each) => ({ ...each, width: panel })) };
}

/**
 * @param {HTMLElement} figure
 * @param {"drawn" | "failed"} state
 */
function show(figure, state) {
  figure.dataset.state = state;
  for (const element of findAll("[data-drawn]", figure)) element.hidden = state !== "drawn";
  for (const element of findAll("[data-failed]", figure)) element.hidden = state !== "failed";
}

// ---- Saving ----------------------------------------------------------------------

/** @param {HTMLElement} figure */
function wire(figure) {
  for (const button of findAll("[data-download]", figure)) button.onclick = () => save(figure, button);
}

/**
 * @param {HTMLElement} figure
 * @param {HTMLElement} button
 */
async function save(figure, button) {
  const form = button.dataset.download ?? "";
  const failed = find("[data-unsaved]", figure);
  button.setAttribute("aria-busy", "true");
  try {
    const link = document.createElement("a");
    link.download = `${figure.dataset.name ?? "chart"}.${form}`;
    link.href = URL.createObjectURL(await file(figure, form));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
    failed.hidden = true;
  } catch (error) {
    console.error(error);
    failed.hidden = false;
  }
  button.removeAttribute("aria-busy");
}

/**
 * @param {HTMLElement} figure
 * @param {string} form
 * @returns {Promise<Blob>}
 */
async function file(figure, form) {
  const found = given.get(figure);
  if (!found) throw new Error("the figure is not drawn yet");
  const body = new FormData();
  body.set("csrf_token", find('input[name="csrf_token"]', document, HTMLInputElement).value);
  body.set("specs", found.text);
  body.set("signature", found.signature);
  body.set("theme", found.theme);
  body.set("title", figure.querySelector("figcaption")?.textContent.trim() ?? "");
  for (const [name, value] of Object.entries(parameters.get(figure) ?? {})) body.set(`parameter-${name}`, String(value));
  const answer = await fetch(`${figure.dataset.save}${form}`, { method: "POST", body });
  if (!answer.ok || answer.redirected) throw new Error(`saving the figure was answered by ${answer.status}`);
  return answer.blob();
}
