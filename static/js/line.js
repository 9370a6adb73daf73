// A line to the server: one Socket.IO connection that comes back by itself and says when it is gone.

import { io } from "../vendor/socket.io.esm.min.js";

const PATIENCE = 2000; // a shorter break is not worth a word
const EVERYWHERE = { transports: ["websocket", "polling"], tryAllTransports: true, reconnectionDelay: 500, reconnectionDelayMax: 4000 };

/** @typedef {Error & {data?: any}} Refusal - why the server does not want us, in its own words */

/**
 * Calls `on.back` and `on.lost` with the line, `on.refused` with the error when the server does not want it.
 *
 * @param {string} namespace
 * @param {object} options - of the Socket.IO client
 * @param {{back(): void, lost(): void, refused(error: Refusal): void}} on
 * @param {number} pause - milliseconds after which to come back when the server has said goodbye; the client leaves that to us
 */
export function line(namespace, options, on, pause) {
  const socket = io(namespace, { ...EVERYWHERE, ...options });
  /** @type {number | undefined} */
  let worry;

  function gone() {
    worry ??= setTimeout(on.lost, PATIENCE);
  }

  function calm() {
    clearTimeout(worry);
    worry = undefined;
  }

  socket.on("connect", () => {
    calm();
    on.back();
  });
  socket.on("disconnect", (reason) => {
    gone();
    if (reason === "io server disconnect") setTimeout(() => socket.connect(), pause);
  });
  socket.on("connect_error", (error) => {
    if (socket.active) return gone();
    if (error.data?.code === "unavailable") {
      setTimeout(() => socket.connect(), pause);
      return gone();
    }
    calm();
    return on.refused(error);
  });
  gone();
  return {
    socket,
    close() {
      calm();
      socket.disconnect();
    },
  };
}
