import { WebSocket } from 'ws';
import { until } from '../time/until.ts';

/** What a server sends; each has some of it. */
export interface Message {
  readonly command?: string;
  readonly type?: string;
  readonly code?: number;
  readonly error?: string;
  readonly id?: number;
  readonly sdp?: { readonly type: string; readonly sdp: string };
  readonly candidates?: readonly {
    readonly candidate: string;
    readonly sdpMLineIndex: number;
    readonly sdpMid?: string;
  }[];
  readonly iceServers?: unknown;
  readonly ice_servers?: unknown;
  readonly message?: {
    readonly rendition_name?: string;
    readonly auto?: boolean;
    readonly renditions?: readonly { readonly name: string }[];
  };
}

/** A player's end of the WebSocket signalling. */
export class SignallingClient {
  readonly socket: WebSocket;
  readonly received: Message[] = [];
  closed = false;

  private constructor(socket: WebSocket) {
    this.socket = socket;
    socket.on('message', (data) => this.received.push(JSON.parse(data.toString()) as Message));
    socket.on('close', () => (this.closed = true));
    socket.on('error', () => undefined);
  }

  /** Takes any certificate. @throws Error when the upgrade is refused */
  static async open(url: string): Promise<SignallingClient> {
    const client = new SignallingClient(new WebSocket(url, { rejectUnauthorized: false }));
    await new Promise<void>((resolve, reject) => client.socket.once('open', resolve).once('error', reject));
    return client;
  }

  send(message: object | string): void {
    this.socket.send(typeof message === 'string' ? message : JSON.stringify(message));
  }

  /** The first message, present or to come, that fits; undefined when the connection ends without it. @throws Error when that takes too long */
  async next(fits: (message: Message) => boolean): Promise<Message | undefined> {
    await until(`a message: ${fits}`, () => this.closed || this.received.some(fits));
    return this.received.find(fits);
  }

  /** The first message to come from now on that fits. */
  async after(fits: (message: Message) => boolean): Promise<Message | undefined> {
    const before = new Set(this.received);
    return this.next((message) => !before.has(message) && fits(message));
  }

  /** @throws Error with what came instead when the connection ends without it */
  async command(name: string): Promise<Message> {
    const found = await this.next(({ command }) => command === name);
    if (found === undefined) throw new Error(`no ${name}, but ${JSON.stringify(this.received.at(-1))}`);
    return found;
  }

  async end(): Promise<void> {
    await this.next(() => false);
  }
}
