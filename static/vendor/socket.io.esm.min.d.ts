// What static/js uses of the Socket.IO client; the file beside this one is minified and has no types of its own.

export interface Socket {
  readonly connected: boolean;
  /** Whether the client connects again by itself. */
  readonly active: boolean;
  /** The same socket, whose next packet is dropped when there is no connection. */
  readonly volatile: Socket;
  connect(): Socket;
  disconnect(): Socket;
  on(event: string, listener: (...args: any[]) => void): Socket;
  /** Hears every event that the server sends. */
  onAny(listener: (event: string, ...args: any[]) => void): Socket;
  emit(event: string, ...args: any[]): Socket;
  emitWithAck(event: string, ...args: any[]): Promise<any>;
  /** The same socket, whose next packet is rejected unless it is answered within that many milliseconds. */
  timeout(milliseconds: number): Socket;
}

export function io(namespace: string, options: object): Socket;
