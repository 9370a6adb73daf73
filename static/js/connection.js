// The line to the server: one connection to one seat.

import { line } from "./line.js";

const ANSWER_WITHIN = 8000;
const PAUSE = 1000; // after the goodbye of a server that restarts

/**
 * @param {{match: string, ticket: string}} seat
 * @param {Record<string, (body?: any) => void>} on - what to do with each event, and when the line is lost, back or refused
 */
export function connect({ match, ticket }, on) {
  const timeout = 5000; // for a proxy that opens a line with nobody at its end
  const heard = { lost: on.lost, back: on.back, refused: (/** @type {import("./line.js").Refusal} */ error) => on.refused(error.data ?? {}) };
  const { socket, close } = line("/play", { query: { match }, auth: { ticket }, timeout }, heard, PAUSE);
  for (const event of ["view", "change", "typing", "presence"]) socket.on(event, on[event]);

  return {
    /**
     * Resolves with the server's answer; rejects when there is no line or no answer.
     *
     * @param {string} event
     * @param {object} [body]
     * @returns {Promise<any>}
     */
    ask(event, body = {}) {
      if (!socket.connected) return Promise.reject(new Error("There is no connection."));
      return socket.timeout(ANSWER_WITHIN).emitWithAck(event, body);
    },
    /**
     * @param {string} event
     * @param {object} body
     */
    tell(event, body) {
      if (socket.connected) socket.volatile.emit(event, body, () => {});
    },
    wake() {
      if (!socket.connected && socket.active) socket.connect();
    },
    close,
  };
}
