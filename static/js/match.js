// The match page. The server has drawn it once; from here on it follows the seat's view.
//
// A game's module (static/js/games/GAME.js, named by its template) may export a function that is given the Page and
// gives any part of a GameScript. A game of messages alone needs no module.

import { Composer } from "./composer.js";
import { connect } from "./connection.js";
import { ask } from "./dialog.js";
import { find, findAll } from "./dom.js";
import { Log } from "./log.js";
import { Outbox } from "./outbox.js";
import { presenceLine } from "./presence.js";
import { alarm, chime, soundSwitch } from "./sound.js";
import { isWhole, may, merge, moments, moves } from "./state.js";
import { stored } from "./store.js";
import { measured } from "./timing.js";
import { TurnLine } from "./turn.js";
import { typingLine } from "./typing.js";
import { language, t } from "./words.js";

/**
 * @typedef {import("./state.js").Entry} Entry
 * @typedef {import("./state.js").Move} Move
 * @typedef {import("./state.js").View} View
 *
 * @typedef {object} Page
 * @property {HTMLElement} main
 * @property {() => View} view
 * @property {(kind: string, body: any) => void} send
 * @property {(kind: string) => string | null} waiting - why a move of this kind has to wait; null when it may be made now
 *
 * @typedef {object} GameScript
 * @property {(entry: Entry) => {text: string, aside: boolean}} words - how the conversation puts a move; aside: laid on the table, not said
 * @property {(kind: string, body: any) => string} compose - the move's text, in the game's own language
 * @property {(view: View) => string | null} turn - which of the template's `says` words this turn has
 * @property {(view: View) => boolean} talking - whether there is anything left to say
 * @property {(text: string, view: View) => string | null} warn - why one may not want to send this; sent again, it goes
 * @property {Record<string, string>} refusals - what to say of a refused move in another language than English, by the code of the violation
 * @property {(kind: string, reason: string) => void} refused - a move that is no message was refused
 * @property {(view: View) => void} update - draw the board
 */

const main = find("#main");
const { match = "", ticket = "", title = "", script } = main.dataset;

/** @type {Record<string, string>} */
const REFUSALS = {
  stale: t("Something else happened first. Please have a look, then send it again."),
  not_your_turn: t("It is your partner’s turn now. Your words are kept here."),
  over: t("The game is over already."),
  too_fast: t("That was very quick. Please wait a moment, then send it again."),
  too_long: t("That is too long to send at once: the limit is %(most)s characters. Please make it shorter.", { most: main.dataset.most }),
  invalid: t("We could not read that. Please try it in other words."),
};
// Refusals by the rules, for readers of other languages; in English the server says more exactly what is wrong.
/** @type {Record<string, string>} */
const VIOLATIONS = {
  empty: t("Please write something first."),
  control_character: t("There is a character in it that cannot be shown. Please remove it."),
};

const RETRY = 1000; // milliseconds between two tries to load the game's module

const byId = (/** @type {string} */ id) => find(`#${id}`);
/** @type {Record<string, string[]>} by moment: what has happened, and what to do */
const says = JSON.parse(main.dataset.says ?? "{}");
const toResult = find("#over a", document, HTMLAnchorElement);
const rulesDialog = /** @type {HTMLDialogElement | null} */ (document.querySelector("#rules-dialog"));

/** @type {View} */
let view = JSON.parse(main.dataset.view ?? "null");
/** @type {"lost" | "refused" | null} what keeps us from the server */
let trouble = null;
let leaving = false;
let going = false; // on the way to the result page
/** @type {string | null} the text that a warning was given for */
let warned = null;
/** @type {Set<number>} plies of the moves made in this tab */
const mine = new Set();

/** @type {Page} */
const page = { main, view: () => view, send, waiting };
const made = script ? (await loaded(script)).default(page) : {};
/** @type {GameScript} */
const game = {
  words: (entry) => ({ text: entry.text ?? "", aside: entry.by === "system" }),
  compose: (_kind, body) => body,
  turn: (now) => now.to_move,
  talking: () => true,
  warn: () => null,
  refusals: {},
  refused: () => {},
  update: () => {},
  ...made,
};

const outbox = new Outbox(stored(match, "move"), (move) => line.ask("move", move), {
  sending: (move) => log.pending(move, "sending"),
  accepted,
  refused,
  unsent: (move) => log.pending(move, "unsent"),
});
const log = new Log(byId("log"), byId("new-message"), game.words, () => outbox.retry());
const callPerson = () => {
  alarm();
  drawTurn();
};
const turn = new TurnLine(byId("turn"), title, callPerson, Number(main.dataset.warnsAfter ?? 0.5));
const showTyping = typingLine(byId("typing"));
const showPresence = presenceLine(byId("presence"));
soundSwitch(byId("sound"));
const composer = new Composer(find("#composer", document, HTMLFormElement), stored(match, "draft"), {
  submit: say,
  typing: (on) => line.tell("typing", { on }),
  input: () => {
    warned = null;
  },
});
// In a study, how each move is written.
const timing = "timed" in main.dataset ? measured(find("#message", document, HTMLTextAreaElement)) : null;
const line = connect(
  { match, ticket },
  {
    view: (whole) => {
      follow(whole);
      outbox.retry();
      if (leaving) leave();
    },
    change: (/** @type {import("./state.js").Change} */ change) => {
      if (change.transcript?.some((entry) => entry.by === "partner")) showTyping(false);
      follow(merge(view, change));
      if (!isWhole(view)) line.ask("sync").catch(() => {});
    },
    presence: ({ on }) => showPresence(on ? "back" : "lost"),
    typing: ({ on, ready }) => showTyping(on && view.status === "playing", view.ply, ready),
    lost: () => inTrouble("lost"),
    back: () => inTrouble(null),
    refused: () => inTrouble("refused"),
  },
);

/**
 * The game's module. Without it nothing can be played, so where the network fails it is tried until it comes.
 *
 * @param {string} url
 * @returns {Promise<any>}
 */
async function loaded(url) {
  for (let attempt = 0; ; attempt += 1) {
    try {
      // A browser may remember a module that did not come, so that each try has an address of its own.
      return await import(attempt ? `${url}${url.includes("?") ? "&" : "?"}attempt=${attempt}` : url);
    } catch (error) {
      if (!(error instanceof TypeError)) throw error; // it came, and is broken
      byId("turn").className = "turn turn-lost";
      byId("turn-now").textContent = says.lost[0];
      await new Promise((resolve) => setTimeout(resolve, RETRY));
    }
  }
}

// ---- What comes in ---------------------------------------------------------

/** @param {View} next */
function follow(next) {
  const ended = next.status === "over" && view.status !== "over";
  const missed = ended && "timed" in main.dataset && view.clock?.of === "turn" && next.outcome?.reason === "timeout";
  if (ended || (next.to_move === "you" && view.to_move !== "you")) chime();
  view = next;
  settleSeen();
  render();
  if (ended) end();
  if (missed) seeResult(); // in a study, the question whether one is still there
}

// A move on its way that is in the conversation has arrived, whether or not its answer did.
function settleSeen() {
  const move = outbox.move;
  if (!move) return;
  const same = (/** @type {Entry} */ entry) => entry.by === "you" && entry.ply === move.ply && entry.text === move.text;
  if (!view.transcript.some(same)) return;
  outbox.settle();
  accepted(move);
}

function render() {
  const over = view.status === "over";
  if (outbox.move) log.pending(outbox.move, "sending");
  log.render(view.transcript);
  game.update(view);
  const talking = !over && game.talking(view);
  composer.show(talking);
  if (!talking) skipToPage();
  composer.wait(waiting("message"));
  turn.until(over ? null : view.clock, view.clock?.of === "match" || view.to_move === "you");
  if (view.status === "playing" && view.to_move === "you") timing?.show(view.ply);
  main.classList.toggle("match-over", over);
  byId("over").hidden = !over;
  byId("leave").hidden = over;
  drawTurn();
}

// Where nothing is left to say, the skip link leads past the bar.
function skipToPage() {
  const skip = find(".skip", document, HTMLAnchorElement);
  skip.hash = "#main";
  skip.textContent = skip.dataset.noMessage ?? "";
}

function drawTurn() {
  const over = view.status === "over";
  const problem = over ? null : trouble;
  const moment = problem ?? moments(view, game.turn(view)).find((name) => name in says) ?? "over";
  const yours = view.status === "playing" && view.to_move === "you";
  const warned = problem || over ? "" : turn.stage;
  const calm = yours ? "" : "partner";
  // A game whose half is over is only told so; the turn's clock colours the line from then on.
  const tone = problem ? "lost" : over ? "over" : warned === "soon" && view.clock?.of === "match" ? calm : warned || calm;
  const words = tone === "soon" || tone === "last" ? warning(tone, says[moment]) : says[moment];
  const tab = yours && !problem ? t("Your turn") : calm && !problem && view.status === "playing" ? t("Partner’s turn") : words[0].replace(/\.$/, "");
  turn.show(tone, words, tab);
  byId("reload").hidden = problem !== "refused";
}

/**
 * What is said of a clock that runs out, before what the turn has to say.
 *
 * @param {"soon" | "last"} stage
 * @param {string[]} words - of the turn
 */
function warning(stage, [now]) {
  const [warned, then] = says[view.clock?.of === "match" ? "last match" : stage];
  return [`${warned} ${now}`, then];
}

/** @param {"lost" | "refused" | null} what */
function inTrouble(what) {
  trouble = what;
  if (what) showTyping(false);
  if (what) showPresence(""); // nothing is known of the partner now
  drawTurn();
}

// The end: whoever ended it by an offer or a guess goes on to the result; nobody else is taken anywhere.
function end() {
  const last = moves(view).at(-1);
  showTyping(false);
  outbox.settle();
  log.drop();
  line.close();
  showPresence("");
  if (leaving || (last && last.by === "you" && last.kind !== "message" && mine.has(last.ply))) {
    seeResult();
    return;
  }
  for (const open of findAll("dialog[open]:not(#rules-dialog)", document, HTMLDialogElement)) open.close();
  if (!rulesDialog?.open) toResult.focus();
}

// The end and the answer to leaving may both lead there: once is enough.
function seeResult() {
  if (!going) location.assign(toResult.href);
  going = true;
}

// ---- What goes out ---------------------------------------------------------

/** @type {Page["waiting"]} */
function waiting(kind) {
  if (outbox.move) return t("Your last move is still on its way.");
  if (may(view, kind)) return null;
  return view.to_move === "you" ? t("That cannot be done now.") : t("It is your partner’s turn. You can send this when it is yours.");
}

/** @type {Page["send"]} */
function send(kind, body) {
  outbox.send(kind, body, game.compose(kind, body), view.ply, timing?.take());
  composer.wait(waiting("message"));
}

/** @param {string} text */
function say(text) {
  const reason = waiting("message");
  if (reason) return composer.explain(reason);
  if (!text) return composer.refuse(t("Please write something first."));
  const warning = warned === text ? null : game.warn(text, view);
  if (warning) {
    warned = text;
    return composer.refuse(warning);
  }
  composer.clear();
  return send("message", text);
}

/** @param {Move} move */
function accepted(move) {
  mine.add(move.ply);
  log.settle(move.ply);
}

/**
 * @param {Move} move
 * @param {{code: string, violation: string, message: string}} error - the server's
 */
function refused(move, { code, violation, message }) {
  const translated = language() === "en" ? null : { ...VIOLATIONS, ...game.refusals }[violation];
  const reason = REFUSALS[code] ?? translated ?? message;
  log.drop();
  composer.wait(waiting("message"));
  if (move.kind === "message") {
    composer.refuse(reason, move.body);
    timing?.restore(move.body.length);
  } else game.refused(move.kind, reason);
  game.update(view);
  if (code !== "illegal_move") line.ask("sync").catch(() => {});
}

async function leave() {
  leaving = true;
  try {
    const answer = await line.ask("resign");
    if (answer.ok || answer.error.code === "over") seeResult();
    else leaving = false;
  } catch {
    drawTurn(); // it is done when the connection is back
  }
}

byId("leave").addEventListener("click", async () => {
  if (await ask(find("#leave-dialog", document, HTMLDialogElement))) leave();
});

document.getElementById("rules-link")?.addEventListener("click", (event) => {
  if (event.ctrlKey || event.metaKey || event.shiftKey) return;
  event.preventDefault();
  rulesDialog?.showModal();
});

// A page that the browser kept while it was left, or slept through, asks what it has missed.
addEventListener("pageshow", (event) => {
  if (!event.persisted) return;
  going = false;
  line.wake();
  line.ask("sync").catch(() => {});
});
addEventListener("online", () => line.wake());
document.addEventListener("visibilitychange", () => {
  if (!document.hidden && view.status === "playing") line.ask("sync").catch(() => {});
});

settleSeen();
render();
// Until here nothing would have heard a key or a click, so the server draws what can be pressed as inert.
for (const part of findAll("[inert]")) part.inert = false;
