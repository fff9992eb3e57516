import { connect, type Socket } from 'node:net';

export interface HttpAnswer {
  readonly status: number;
  readonly body: Buffer;
}

interface Pending {
  readonly resolve: (answer: HttpAnswer) => void;
  readonly reject: (error: Error) => void;
}

const END = Buffer.from('\r\n\r\n');

/** GET requests one after the other on one connection that is kept open: as little CPU time as a viewer can take. */
export class HttpConnection {
  readonly #port: number;
  readonly #socket: Socket;
  #pending: Pending | undefined;
  #chunks: Buffer[] = [];
  #head: Buffer = Buffer.alloc(0);
  #status = 0;
  #left = -1;

  constructor(port: number) {
    this.#port = port;
    this.#socket = connect(port, '127.0.0.1');
    this.#socket.setNoDelay(true);
    this.#socket.on('data', (data) => this.#receive(data));
    this.#socket.on('error', (error) => this.#fail(error));
    this.#socket.on('close', () => this.#fail(new Error('the server closed the connection')));
  }

  get(path: string): Promise<HttpAnswer> {
    return new Promise((resolve, reject) => {
      if (this.#pending !== undefined) throw new Error('a request is under way');
      if (this.#socket.destroyed) throw new Error('the connection is closed');
      this.#pending = { resolve, reject };
      this.#socket.write(`GET ${path} HTTP/1.1\r\nHost: 127.0.0.1:${this.#port}\r\n\r\n`);
    });
  }

  /** Gives up what is under way. */
  close(): void {
    this.#socket.destroy();
  }

  #receive(data: Buffer): void {
    if (this.#left >= 0) return this.#take(data);
    this.#head = this.#head.length === 0 ? data : Buffer.concat([this.#head, data]);
    const end = this.#head.indexOf(END);
    if (end < 0) return;
    const text = this.#head.toString('latin1', 0, end);
    this.#status = Number(text.slice(9, 12));
    this.#left = Number(/\r\ncontent-length: *(\d+)/i.exec(text)?.[1] ?? 0);
    this.#take(this.#head.subarray(end + END.length));
  }

  #take(data: Buffer): void {
    this.#chunks.push(data);
    this.#left -= data.length;
    if (this.#left > 0) return;
    const answer = { status: this.#status, body: Buffer.concat(this.#chunks) };
    const pending = this.#pending;
    this.#pending = undefined;
    this.#chunks = [];
    this.#head = Buffer.alloc(0);
    this.#left = -1;
    pending?.resolve(answer);
  }

  #fail(error: Error): void {
    this.#pending?.reject(error);
    this.#pending = undefined;
  }
}
