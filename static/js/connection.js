// The line to the server: one Socket.IO connection to one seat. It comes back by itself and says when it is gone.

import { io } from "../vendor/socket.io.esm.min.js";

const PATIENCE = 2000; // a shorter break is not worth a word
const ANSWER_WITHIN = 8000;

export function connect({ match, ticket }, on) {
  const socket = io("/play", {
    query: { match },
    auth: { ticket },
    transports: ["websocket", "polling"],
    tryAllTransports: true,
    reconnectionDelay: 500,
    reconnectionDelayMax: 4000,
    timeout: 5000, // for a proxy that opens a line with nobody at its end
  });
  let worry = null;

  function gone() {
    worry ??= setTimeout(on.lost, PATIENCE);
  }

  function calm() {
    clearTimeout(worry);
    worry = null;
  }

  socket.on("connect", () => {
    calm();
    on.back();
  });
  socket.on("disconnect", (reason) => {
    gone();
    // The client leaves it to us to return when the server said goodbye, as it does when it restarts.
    if (reason === "io server disconnect") setTimeout(() => socket.connect(), 1000);
  });
  socket.on("connect_error", (error) => {
    if (socket.active) return gone();
    calm();
    return on.refused(error.data ?? {});
  });
  for (const event of ["view", "change", "typing", "presence"]) socket.on(event, on[event]);
  gone();

  return {
    // Resolves with the server's answer; rejects when there is no line or no answer.
    ask(event, body = {}) {
      if (!socket.connected) return Promise.reject(new Error("There is no connection."));
      return socket.timeout(ANSWER_WITHIN).emitWithAck(event, body);
    },
    tell(event, body) {
      if (socket.connected) socket.volatile.emit(event, body, () => {});
    },
    wake() {
      if (!socket.connected && socket.active) socket.connect();
    },
    close() {
      calm();
      socket.disconnect();
    },
  };
}
