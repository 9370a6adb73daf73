// The one move on its way. It keeps its move_id until the server has answered, across lost lines and refreshed
// pages, so that sending it again never plays it twice.

/** @typedef {import("./state.js").Move} Move */

export class Outbox {
  #store;
  #post;
  #on;
  /** @type {Move | null} the move whose answer is awaited */
  #busy = null;

  /**
   * @param {import("./store.js").Store} store
   * @param {(move: {move_id: string, ply: number, text: string, timing?: Record<string, number>}) => Promise<any>} post - gives the server's answer, or rejects
   * @param {{sending(move: Move): void, accepted(move: Move): void, refused(move: Move, error: any): void, unsent(move: Move): void}} on
   */
  constructor(store, post, on) {
    this.#store = store;
    this.#post = post;
    this.#on = on;
    /** @type {Move | null} */
    this.move = store.read();
  }

  /**
   * @param {string} kind
   * @param {any} body
   * @param {string} text
   * @param {number} ply
   * @param {Record<string, number>} [timing] - how it was written, in a study
   */
  send(kind, body, text, ply, timing) {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    const move_id = Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.move = { move_id, ply, text, kind, body, timing, at: new Date().toISOString() };
    this.#store.write(this.move);
    return this.retry();
  }

  async retry() {
    const move = this.move;
    if (!move || this.#busy === move) return;
    this.#busy = move;
    this.#on.sending(move);
    try {
      const { move_id, ply, text, timing } = move;
      const answer = await this.#post(timing ? { move_id, ply, text, timing } : { move_id, ply, text });
      if (this.move !== move) return; // it showed up in the conversation before its answer did
      if (answer.error?.code === "unavailable") return this.#on.unsent(move);
      this.settle();
      if (answer.ok) this.#on.accepted(move);
      else this.#on.refused(move, answer.error);
    } catch {
      if (this.move === move) this.#on.unsent(move);
    } finally {
      if (this.#busy === move) this.#busy = null;
    }
  }

  settle() {
    this.move = null;
    this.#store.write(null);
  }
}
